"""Recipients: names of agents, and the three constants."""

from . import v1

OPERATOR = v1.Recipient(operator=v1.OperatorRecipient())
"""The operator."""
PARENT = v1.Recipient(parent=v1.ParentRecipient())
"""The parent of the calling agent."""
EVERYONE = v1.Recipient(everyone=v1.EveryoneRecipient())
"""Every active agent but the caller."""


def recipient(to: str | v1.Recipient) -> v1.Recipient:
    """Returns the recipient of this name, or the recipient as it is."""
    return v1.Recipient(agent=to) if isinstance(to, str) else to
