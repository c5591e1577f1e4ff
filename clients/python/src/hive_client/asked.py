"""A question that was asked, and the wait for its outcome."""

import contextlib

from . import v1
from .connection import Connection
from .error import HiveError


class Asked:
    """A question on disk.

    Attributes:
        question: The question as it was when it was asked.
        already_asked: Whether an earlier run of the same delivery had asked it already.
    """

    def __init__(self, connection: Connection, response: v1.AskQuestionResponse) -> None:
        self._connection = connection
        self.question = response.question
        self.already_asked = response.already_asked

    async def outcome(self, timeout: float | None = None) -> v1.Question:
        """Waits until the question is closed: ANSWERED, EXPIRED or CANCELLED.

        Args:
            timeout: Seconds to wait; None waits without a limit.

        Raises:
            HiveError: DEADLINE_EXCEEDED after the timeout, or a refusal of the broker.
        """
        request = v1.WatchQuestionsRequest(question_id=self.question.id)
        watch = self._connection.stub(v1.QuestionServiceStub).WatchQuestions
        try:
            async with (
                self._connection.scope(timeout),
                contextlib.aclosing(self._connection.watch(watch, lambda: request)) as steps,
            ):
                async for step in steps:
                    part = step.snapshot if step.HasField("snapshot") else step.batch
                    for question in part.questions:
                        if question.state != v1.QuestionState.QUESTION_STATE_OPEN:
                            closed: v1.Question = question
                            return closed
        except TimeoutError:
            pass
        problem = f"question {self.question.id} is open after {timeout} s: wait again"
        raise HiveError("DEADLINE_EXCEEDED", problem)
