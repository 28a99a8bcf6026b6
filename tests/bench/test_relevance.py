"""The questions of the bench of relevance: how their files name right and near answers."""

from __future__ import annotations

from bench.relevance.everyday import everyday_questions
from bench.relevance.scoring import score


def test_each_text_that_answers_a_question_is_right_and_a_near_one_counts_less():
    (question,) = everyday_questions(["bill | payment, letter: what the van cost"])
    assert question.text == "what the van cost"
    for right in ("bill", "payment"):
        assert score(question, [right]).first_three == 1
    assert score(question, ["letter"]).first_three == 0
    assert 0 < score(question, ["letter"]).ndcg_10 < score(question, ["payment"]).ndcg_10
    assert score(question, ["bill", "payment", "letter"]).ndcg_10 == 1
