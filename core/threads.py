"""Calls that block, off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec, TypeVar

Args = ParamSpec("Args")
T = TypeVar("T")


async def in_thread(threads: Executor, call: Callable[Args, T], *args: Args.args, **kwargs: Args.kwargs) -> T:
    """What a call returns or raises that is made by one of `threads`. A cancellation does not stop the call."""
    return await asyncio.get_running_loop().run_in_executor(threads, partial(call, *args, **kwargs))
