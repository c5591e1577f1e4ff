//! The recipient in a tool call: an agent, or a word for another recipient.

use hive_proto::v1::recipient::To;
use hive_proto::v1::{EveryoneRecipient, OperatorRecipient, ParentRecipient, Recipient};

/// The word for everyone.
pub(super) const EVERYONE: &str = "*";

/// Parses a recipient from a model.
pub(super) fn parse(to: &str) -> Recipient {
    let to = match to.trim() {
        "operator" => To::Operator(OperatorRecipient {}),
        "<parent>" => To::Parent(ParentRecipient {}),
        EVERYONE => To::Everyone(EveryoneRecipient {}),
        name => To::Agent(name.to_owned()),
    };
    Recipient { to: Some(to) }
}
