"""Conversations with assistants."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from headgate.sources.registry import CONVERSATIONS
from tests.sources.source_checks import check_all, hostile, items_of, rejects_of, rows_of, tree_with


def node(name, parent, role, content, time=None, **more):
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": time,
        "content": content,
        "metadata": {},
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def text(*parts):
    return {"content_type": "text", "parts": list(parts)}


CHATGPT = [
    {
        "title": "Planks for the bridge",
        "create_time": 1700000000.5,
        "update_time": 1700000900,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": node("s", "root", "system", text("")),
            "q": node(
                "q",
                "s",
                "user",
                text("Which wood?"),
                1700000001,
                metadata={"attachments": [{"name": "b.jpg"}]},
            ),
            "a1": node("a1", "q", "assistant", text("Pine."), 1700000002, metadata={"model_slug": "m-1"}),
            "a2": node("a2", "q", "assistant", text("Larch."), 1700000003, metadata={"model_slug": "m-2"}),
            "t": node(
                "t", "a2", "assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"
            ),
            "o": node("o", "t", "tool", {"content_type": "execution_output", "text": "1"}, 1700000004),
            "h": node("h", "o", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
            "p": node(
                "p",
                "h",
                "user",
                {
                    "content_type": "multimodal_text",
                    "parts": [
                        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
                        "Like this?",
                    ],
                },
            ),
        },
        "current_node": "p",
        "conversation_id": "c-1",
        "default_model_slug": "m-2",
    }
]
CLAUDE = [
    {
        "uuid": "u-1",
        "name": "",
        "summary": "Talk of boats",
        "created_at": "2024-02-01T09:00:00.000000Z",
        "updated_at": "2024-02-01T10:00:00.000000Z",
        "account": {"uuid": "x"},
        "chat_messages": [
            {
                "uuid": "m-1",
                "text": "How do I seal a boat?",
                "content": [{"type": "text", "text": "How do I seal a boat?"}],
                "sender": "human",
                "created_at": "2024-02-01T09:00:01.000000Z",
                "attachments": [{"file_name": "notes.txt", "extracted_content": "Leaks at the bow."}],
                "files": [{"file_name": "boat.png"}],
            },
            {
                "uuid": "m-2",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "Wood or steel?"},
                    {"type": "tool_use", "name": "web_search", "input": {"query": "seal"}},
                    {"type": "tool_result", "content": [{"type": "text", "text": "Use tar."}]},
                    {"type": "text", "text": "With tar."},
                ],
                "sender": "assistant",
                "created_at": "2024-02-01T09:00:05.000000Z",
                "parent_message_uuid": "m-1",
            },
        ],
    }
]


def coded(type_, uuid, parent, content, **more):
    return {
        "type": type_, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "isSidechain": False, "cwd": "/home/ines/boat",
        "gitBranch": "main", "timestamp": f"2026-03-01T08:00:0{len(uuid)}.000Z", "message": {"role": type_, "content": content}, **more,
    }  # fmt: skip


CODE = [
    {"type": "summary", "summary": "Mend the pump script", "leafUuid": "d"},
    coded("user", "a", None, "Mend the pump script, please"),
    coded("assistant", "bb", "a", [
        {"type": "thinking", "thinking": "Look first."},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "pump.py"}},
    ]),
    coded("user", "ccc", "bb", [{"type": "tool_result", "tool_use_id": "t1", "content": "x" * 5000}]),
    coded("assistant", "dddd", "ccc", [{"type": "text", "text": "Done."}], isSidechain=True),
    {"type": "file-history-snapshot", "messageId": "q"},
]  # fmt: skip
CODEX = [
    {"timestamp": "2026-03-01T08:00:00Z", "type": "session_meta",
     "payload": {"id": "r-1", "timestamp": "2026-03-01T08:00:00Z", "cwd": "/home/ines/boat", "git": {"branch": "main"}}},
    {"timestamp": "2026-03-01T08:00:01Z", "type": "turn_context", "payload": {"model": "g-5", "cwd": "/home/ines/boat"}},
    {"timestamp": "2026-03-01T08:00:01Z", "type": "response_item", "payload": {"type": "message", "role": "user",
     "content": [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]}},
    {"timestamp": "2026-03-01T08:00:02Z", "type": "response_item", "payload": {"type": "message", "role": "user",
     "content": [{"type": "input_text", "text": "List the files"}]}},
    {"timestamp": "2026-03-01T08:00:02Z", "type": "event_msg", "payload": {"type": "message", "role": "user",
     "content": [{"type": "input_text", "text": "List the files"}]}},
    {"timestamp": "2026-03-01T08:00:03Z", "type": "response_item",
     "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Use ls"}]}},
    {"timestamp": "2026-03-01T08:00:04Z", "type": "response_item",
     "payload": {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "k"}},
    {"timestamp": "2026-03-01T08:00:05Z", "type": "response_item",
     "payload": {"type": "function_call_output", "call_id": "k", "output": '{"output":"pump.py","metadata":{}}'}},
    {"timestamp": "2026-03-01T08:00:06Z", "type": "response_item", "payload": {"type": "message", "role": "assistant",
     "content": [{"type": "output_text", "text": "One file."}]}},
]  # fmt: skip
OLD_CODEX = [
    {"id": "r-0", "timestamp": "2025-05-01T08:00:00Z", "instructions": None},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
]


def jsonl(items) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


FILES = {
    "conversations.json": json.dumps(CHATGPT),
    "claude/conversations.json": json.dumps(CLAUDE),
    "projects/boat/s-1.jsonl": jsonl(CODE),
    "sessions/rollout-2026-03-01-r-1.jsonl": jsonl(CODEX),
    "sessions/rollout-2025-05-01-r-0.jsonl": jsonl(OLD_CODEX),
}


def test_the_files_of_one_program_become_one_connection():
    found = CONVERSATIONS.detect(tree_with(FILES))
    assert [(one.title, len(one.files)) for one in found] == [
        ("ChatGPT", 1),
        ("Claude", 1),
        ("Claude Code", 1),
        ("Codex", 2),
    ]


def test_chatgpt_gives_the_current_branch_in_order_and_marks_the_others():
    rows = rows_of(CONVERSATIONS, {"conversations.json": json.dumps(CHATGPT)})
    assert rows["conversations"] == [
        {
            "id": "c-1",
            "title": "Planks for the bridge",
            "service": "ChatGPT",
            "started_at": "2023-11-14T22:13:20.500000Z",
            "updated_at": "2023-11-14T22:28:20Z",
            "model": "m-2",
            "message_count": 7,
            "is_archived": False,
        }
    ]
    assert [(one["id"], one["author"], one["is_current"], one["position"]) for one in rows["messages"]] == [
        ("c-1-q", "user", True, 2),
        ("c-1-a2", "assistant", True, 3),
        ("c-1-t", "assistant", True, 4),
        ("c-1-o", "tool", True, 5),
        ("c-1-h", "assistant", True, 6),
        ("c-1-p", "user", True, 7),
        ("c-1-a1", "assistant", False, 3),
    ]
    asked, _, code, output, thought, picture, _ = rows["messages"]
    assert (asked["files"], asked["sent_at"]) == (["b.jpg"], "2023-11-14T22:13:21Z")
    assert (code["tools"], code["tool_input"], code["sent_at"]) == (
        ["python"],
        "print(1)",
        "2023-11-14T22:13:20.500000Z",
    )
    assert (output["tool_output"], thought["reasoning"], picture["text"]) == ("1", "Hm.", "Like this?")


@pytest.mark.parametrize("leaf", [None, "gone"])
def test_a_chatgpt_conversation_without_a_current_message_goes_on_to_its_newest(leaf):
    unmarked = [{**CHATGPT[0], "current_node": leaf}]
    rows, marked = (
        rows_of(CONVERSATIONS, {"conversations.json": json.dumps(export)}) for export in (unmarked, CHATGPT)
    )
    assert rows == marked


def test_a_ring_of_parents_ends():
    ring = [
        {
            **CHATGPT[0],
            "current_node": current,
            "mapping": {"a": node("a", "b", "user", text("x")), "b": node("b", "a", "user", text("y"))},
        }
        for current in ("a", None)
    ]
    rows = rows_of(CONVERSATIONS, {"conversations.json": json.dumps(ring)})
    assert len(rows["messages"]) == 2 * 2


def test_claude_messages_have_their_tools_and_the_text_of_attached_files():
    rows = rows_of(CONVERSATIONS, {"conversations.json": json.dumps(CLAUDE)})
    (conversation,) = rows["conversations"]
    assert (conversation["title"], conversation["summary"]) == ("How do I seal a boat?", "Talk of boats")
    asked, answer = rows["messages"]
    assert (asked["author"], asked["files"]) == ("user", ["notes.txt", "boat.png"])
    assert asked["attached_text"] == "Leaks at the bow."
    assert answer == {
        "id": "u-1-m-2",
        "conversation_id": "u-1",
        "conversation": "How do I seal a boat?",
        "author": "assistant",
        "sent_at": "2024-02-01T09:00:05.000000Z",
        "text": "With tar.",
        "reasoning": "Wood or steel?",
        "tools": ["web_search"],
        "tool_input": '{"query":"seal"}',
        "tool_output": "Use tar.",
        "parent_id": "u-1-m-1",
        "position": 1,
        "is_current": True,
    }


def test_a_session_of_claude_code_has_its_title_folder_and_whole_tool_outputs():
    rows = rows_of(CONVERSATIONS, {"s-1.jsonl": jsonl(CODE)})
    (session,) = rows["conversations"]
    assert session == {
        "id": "s-1",
        "title": "Mend the pump script",
        "service": "Claude Code",
        "started_at": "2026-03-01T08:00:01.000Z",
        "updated_at": "2026-03-01T08:00:04.000Z",
        "message_count": 4,
        "folder": "/home/ines/boat",
        "branch": "main",
    }
    asked, call, output, side = rows["messages"]
    assert (asked["id"], asked["author"], asked["text"]) == ("s-1-a", "user", "Mend the pump script, please")
    assert (call["tools"], call["tool_input"], call["reasoning"]) == (
        ["Read"],
        '{"path":"pump.py"}',
        "Look first.",
    )
    assert (output["author"], output["tool_output"]) == ("tool", "x" * 5000)
    assert (side["is_current"], asked["is_current"]) == (False, True)


def test_the_file_of_a_side_task_does_not_replace_its_session():
    side = [{**line, "isSidechain": True} for line in CODE if line["type"] in {"user", "assistant"}]
    rows = rows_of(CONVERSATIONS, {"agent-1.jsonl": jsonl(side)})
    assert set(rows) == {"messages"}


def test_a_session_of_codex_is_read_without_its_events():
    rows = rows_of(CONVERSATIONS, {"rollout-1.jsonl": jsonl(CODEX)})
    (session,) = rows["conversations"]
    assert (session["id"], session["title"], session["model"]) == ("r-1", "List the files", "g-5")
    assert [
        (one["author"], one.get("text"), one.get("tools"), one.get("tool_output")) for one in rows["messages"]
    ] == [
        ("user", "<environment_context>x</environment_context>", None, None),
        ("user", "List the files", None, None),
        ("assistant", None, None, None),
        ("assistant", None, ["shell"], None),
        ("tool", None, None, "pump.py"),
        ("assistant", "One file.", None, None),
    ]


def test_an_older_session_of_codex_has_the_time_of_its_first_line():
    rows = rows_of(CONVERSATIONS, {"rollout-0.jsonl": jsonl(OLD_CODEX)})
    assert [(one["id"], one["sent_at"]) for one in rows["messages"]] == [("r-0-2", "2025-05-01T08:00:00Z")]


def test_a_session_that_went_on_has_the_same_keys_for_its_first_messages():
    before = rows_of(CONVERSATIONS, {"rollout-1.jsonl": jsonl(CODEX[:5])})["messages"]
    after = rows_of(CONVERSATIONS, {"rollout-1.jsonl": jsonl(CODEX)})["messages"]
    assert [one["id"] for one in after[: len(before)]] == [one["id"] for one in before]


@pytest.mark.parametrize("before", ["", "\ufeff", " \n\t"])
@pytest.mark.parametrize("export", [CHATGPT, CLAUDE])
def test_one_conversation_is_read_as_a_list_of_it_is(export, before: str):
    one = rows_of(CONVERSATIONS, {"conversations.json": before + json.dumps(export[0])})
    assert one == rows_of(CONVERSATIONS, {"conversations.json": json.dumps(export[:1])})
    assert one["messages"]


@pytest.mark.parametrize(
    "content",
    ['{"conversations": [{"mapping": {}}]}', '{"mapping": {}}', '{"mapping": ', '{"chat_messages": [}'],
)
def test_an_object_that_is_no_conversation_is_rejected(content: str):
    assert rejects_of(CONVERSATIONS, {"conversations.json": content})


def test_a_cut_export_gives_what_is_before_the_cut():
    content = json.dumps(CLAUDE * 2)[:-40]
    assert [one.reason for one in rejects_of(CONVERSATIONS, {"conversations.json": content})] == [
        "The rest is not JSON; the file may be cut."
    ]
    assert len(items_of(CONVERSATIONS, {"conversations.json": content})) == 5


def test_other_files_are_left_alone():
    others = {"conversations.json": "[]", "a.jsonl": '{"x": 1}', "b.json": json.dumps(CHATGPT)}
    assert CONVERSATIONS.detect(tree_with(others)) == []


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CONVERSATIONS, FILES)


@settings(max_examples=50, deadline=None)
@given(hostile(json.dumps(CHATGPT).encode()), hostile(json.dumps(CLAUDE).encode()))
def test_a_broken_export_gives_rows_that_can_be_stored_or_rejects(chatgpt, claude):
    check_all(CONVERSATIONS, {"conversations.json": chatgpt, "claude/conversations.json": claude})


@settings(max_examples=50, deadline=None)
@given(hostile(jsonl(CODE).encode()), hostile(jsonl(CODEX).encode()))
def test_broken_transcripts_give_rows_that_can_be_stored_or_rejects(code, codex):
    check_all(CONVERSATIONS, {"s.jsonl": code, "rollout-x.jsonl": codex})
