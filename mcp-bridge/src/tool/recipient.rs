//! Whom a tool call names: an agent, or one of the words for the others.

use hive_proto::v1::recipient::To;
use hive_proto::v1::{EveryoneRecipient, OperatorRecipient, ParentRecipient, Recipient};

/// The word for everyone.
pub(super) const EVERYONE: &str = "*";

/// The recipient that a model wrote.
pub(super) fn parse(to: &str) -> Recipient {
    let to = match to.trim() {
        "operator" => To::Operator(OperatorRecipient {}),
        "<parent>" => To::Parent(ParentRecipient {}),
        EVERYONE => To::Everyone(EveryoneRecipient {}),
        name => To::Agent(name.to_owned()),
    };
    Recipient { to: Some(to) }
}
