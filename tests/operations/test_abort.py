"""Aborting a call really ends it and what it has started, each of them once, the deepest first."""

import asyncio
import gc

import pytest

from headgate.errors import CallError
from tests.operations.parts import composing, leaf, operation, registry

pytestmark = pytest.mark.anyio


class Watched:
    """Handlers that report when they have begun and how they ended, and wait in between."""

    def __init__(self):
        self.begun = {}
        self.ended = []
        self.ids = {}
        self.release = asyncio.Event()
        self._others = asyncio.all_tasks()

    def _enter(self, name, context):
        self.ids[name] = context.request_id
        self.begun.setdefault(name, asyncio.Event()).set()

    def waiting(self, name):
        async def handler(_value, context):
            self._enter(name, context)
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                # A clean-up that needs the loop: a second cancellation would cut it short.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                self.ended.append(name)
                raise
            return name

        return handler

    def calling(self, name, *children):
        async def handler(_value, context):
            self._enter(name, context)
            try:
                async with asyncio.TaskGroup() as group:
                    for child in children:
                        group.create_task(context.env.execute(f"ns/{child}"))
            except asyncio.CancelledError:
                self.ended.append(name)
                raise
            return name

        return handler

    async def started(self, *names):
        async with asyncio.timeout(5):
            for name in names:
                await self.begun.setdefault(name, asyncio.Event()).wait()

    async def all_over(self):
        """Wait until every task that came after this object is done."""
        async with asyncio.timeout(5):
            await asyncio.gather(*(asyncio.all_tasks() - self._others), return_exceptions=True)


def tree(watched):
    """Build root -> (left -> leaf1, right -> leaf2)."""
    return registry(
        composing(watched.calling("root", "left", "right"), "ns/left", "ns/right", name="root"),
        composing(watched.calling("left", "leaf1"), "ns/leaf1", name="left"),
        composing(watched.calling("right", "leaf2"), "ns/leaf2", name="right"),
        leaf(watched.waiting("leaf1"), "leaf1"),
        leaf(watched.waiting("leaf2"), "leaf2"),
    )


async def outcome(task):
    async with asyncio.timeout(5):
        try:
            return (await task).data
        except CallError as error:
            return error.code


async def test_a_single_call_is_ended():
    watched = Watched()
    held = registry(operation(watched.waiting("op")))
    task = asyncio.create_task(held.execute("ns/op", request_id="r"))
    await watched.started("op")
    assert held.in_flight == ("r",)
    assert held.abort("r") == ("r",)
    assert await outcome(task) == "ABORTED"
    assert watched.ended == ["op"]
    assert held.in_flight == ()


async def test_an_unknown_id_and_a_second_time_are_no_error():
    watched = Watched()
    held = registry(operation(watched.waiting("op")))
    task = asyncio.create_task(held.execute("ns/op", request_id="r"))
    await watched.started("op")
    assert held.abort("nobody") == ()
    assert held.abort("r") == ("r",)
    assert held.abort("r") == ()
    assert await outcome(task) == "ABORTED"
    assert held.abort("r") == ()


async def test_a_call_can_be_ended_before_its_handler_has_begun():
    watched = Watched()
    held = registry(operation(watched.waiting("op")))
    task = asyncio.create_task(held.execute("ns/op", request_id="r"))
    await asyncio.sleep(0)
    assert held.in_flight == ("r",)
    held.abort("r")
    assert await outcome(task) == "ABORTED"
    assert watched.begun == {}
    assert held.in_flight == ()


async def test_a_tree_is_ended_from_its_leaves_and_nothing_goes_on():
    watched = Watched()
    held = tree(watched)
    task = asyncio.create_task(held.execute("ns/root", request_id="root"))
    await watched.started("leaf1", "leaf2")
    names = {request_id: name for name, request_id in watched.ids.items()}
    assert [names[one] for one in held.abort("root")] == ["leaf1", "left", "leaf2", "right", "root"]
    assert await outcome(task) == "ABORTED"
    assert sorted(watched.ended) == ["leaf1", "leaf2", "left", "right", "root"]
    assert watched.ended.index("leaf1") < watched.ended.index("left") < watched.ended.index("root")
    assert held.in_flight == ()


async def test_siblings_are_left_alone():
    watched = Watched()
    held = registry(
        composing(watched.calling("left", "leaf1"), "ns/leaf1", name="left"),
        leaf(watched.waiting("leaf1"), "leaf1"),
        operation(watched.waiting("other"), "other"),
    )
    left = asyncio.create_task(held.execute("ns/left", request_id="left"))
    other = asyncio.create_task(held.execute("ns/other", request_id="other"))
    await watched.started("leaf1", "other")
    held.abort("left")
    assert await outcome(left) == "ABORTED"
    assert held.in_flight == ("other",)
    watched.release.set()
    assert await outcome(other) == "other"


async def test_a_child_can_be_ended_alone_and_its_parent_hears_of_it():
    watched = Watched()

    async def outer(_value, context):
        try:
            await context.env.call("ns/leaf")
        except CallError as error:
            return {"child": error.code}

    held = registry(leaf(watched.waiting("leaf")), composing(outer, "ns/leaf"))
    task = asyncio.create_task(held.execute("ns/outer"))
    await watched.started("leaf")
    held.abort(watched.ids["leaf"])
    assert await outcome(task) == {"child": "ABORTED"}


async def test_a_call_that_is_ended_begins_no_new_children():
    watched = Watched()
    refused = []

    async def outer(_value, context):
        watched._enter("outer", context)
        try:
            await context.env.execute("ns/leaf")
        except asyncio.CancelledError:
            try:
                await context.env.execute("ns/leaf")
            except CallError as error:
                refused.append(error.code)
            raise

    held = registry(leaf(watched.waiting("leaf")), composing(outer, "ns/leaf"))
    task = asyncio.create_task(held.execute("ns/outer", request_id="r"))
    await watched.started("leaf")
    assert held.abort("r") == (watched.ids["leaf"], "r")
    assert await outcome(task) == "ABORTED"
    assert refused == ["ABORTED"]
    assert watched.ended == ["leaf"]
    await watched.all_over()
    assert held.in_flight == ()


async def test_cancelling_the_caller_stays_a_cancellation_and_ends_the_call():
    watched = Watched()
    held = tree(watched)
    task = asyncio.create_task(held.execute("ns/root"))
    await watched.started("leaf1", "leaf2")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(watched.ended) == ["leaf1", "leaf2", "left", "right", "root"]
    assert held.in_flight == ()


async def test_ending_calls_leaves_no_task_and_no_complaint_behind():
    watched, complaints = Watched(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    held = tree(watched)
    for end in (lambda task: task.cancel(), lambda _: held.abort("root")):
        task = asyncio.create_task(held.execute("ns/root", request_id="root"))
        await watched.started("leaf1", "leaf2")
        end(task)
        await asyncio.gather(task, return_exceptions=True)
        del task
        watched.begun.clear()
    await watched.all_over()
    gc.collect()
    assert complaints == []
    assert held.in_flight == ()


async def test_a_callers_own_time_limit_works():
    watched = Watched()
    held = registry(operation(watched.waiting("op")))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await held.execute("ns/op")
    assert watched.ended == ["op"]


async def test_a_handler_that_cancels_itself_is_aborted_and_its_caller_lives():
    async def itself(_value, _context):
        raise asyncio.CancelledError

    with pytest.raises(CallError) as raised:
        await registry(operation(itself)).call("ns/op")
    assert raised.value.code == "ABORTED"
    assert asyncio.current_task().cancelling() == 0


async def test_children_do_not_outlive_a_parent_that_ends():
    watched = Watched()
    tasks = []

    async def outer(_value, context):
        tasks.append(asyncio.ensure_future(context.env.execute("ns/leaf")))
        await watched.started("leaf")
        return "done"

    held = registry(leaf(watched.waiting("leaf")), composing(outer, "ns/leaf"))
    assert await held.call("ns/outer") == "done"
    assert await outcome(tasks[0]) == "ABORTED"
    assert watched.ended == ["leaf"]
    assert held.in_flight == ()


async def test_two_calls_under_way_cannot_share_an_id():
    watched = Watched()
    held = registry(operation(watched.waiting("op")))
    first = asyncio.create_task(held.execute("ns/op", request_id="r"))
    await watched.started("op")
    with pytest.raises(CallError) as refused:
        await held.execute("ns/op", request_id="r")
    assert refused.value.code == "INVALID_INPUT"
    watched.release.set()
    assert await outcome(first) == "op"


async def test_calls_run_beside_each_other():
    both = asyncio.Barrier(2)

    async def meet(_value, _context):
        async with asyncio.timeout(5):
            await both.wait()
        return "met"

    held = registry(operation(meet))
    assert await asyncio.gather(held.call("ns/op"), held.call("ns/op")) == ["met", "met"]


@pytest.mark.parametrize(
    ("ended", "gone"),
    [
        ("leaf1", {"leaf1"}),
        ("leaf2", {"leaf2"}),
        ("left", {"left", "leaf1"}),
        ("right", {"right", "leaf2"}),
        ("root", {"root", "left", "right", "leaf1", "leaf2"}),
    ],
)
async def test_wherever_a_tree_is_cut_only_what_hangs_below_is_ended_by_it(ended, gone):
    watched = Watched()
    held = tree(watched)
    task = asyncio.create_task(held.execute("ns/root", request_id="root"))
    await watched.started("leaf1", "leaf2")
    names = {request_id: name for name, request_id in watched.ids.items()}
    order = [names[one] for one in held.abort(watched.ids[ended])]
    assert set(order) == gone
    assert order[-1] == ended
    watched.release.set()
    await outcome(task)
    await watched.all_over()
    assert held.in_flight == ()


async def test_a_tree_that_is_ended_twice_is_ended_once():
    watched = Watched()
    held = tree(watched)
    task = asyncio.create_task(held.execute("ns/root", request_id="root"))
    await watched.started("leaf1", "leaf2")
    assert len(held.abort("root")) == 5
    held.abort("root")
    await outcome(task)
    await watched.all_over()
    assert sorted(watched.ended) == sorted({*watched.ended})
    assert held.in_flight == ()
