//! Receipts of messages, and how the rows of requests have them.
//!
//! Invariant: a receipt that an older version has stored reads as before.

use hive_core::id::MessageId;
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

/// The receipt of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Receipt {
    /// The id of the message.
    pub message: MessageId,
    /// Whether an earlier run had sent it already.
    pub already_sent: bool,
    /// Full inboxes that a broadcast left out.
    pub skipped: Vec<String>,
    /// The number of recipients.
    pub recipients: u32,
    /// When it was accepted.
    pub accept_time: WallTime,
    /// Unsettled deliveries that the one recipient had at that time.
    pub ahead: Option<u32>,
}

/// A receipt as a row has it. Nearly all are plain: a row of half the size makes a commit touch
/// fewer pages.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    /// Of a new message to one recipient: its id, the time, and the deliveries ahead of it.
    Plain(MessageId, WallTime, u32),
    /// Of any other; and of all, from older versions.
    Whole {
        message: MessageId,
        already_sent: bool,
        skipped: Vec<String>,
        recipients: u32,
        accept_time: WallTime,
        #[serde(default)]
        ahead: Option<u32>,
    },
}

impl From<Receipt> for Stored {
    fn from(receipt: Receipt) -> Self {
        let Receipt { message, already_sent, skipped, recipients, accept_time, ahead } = receipt;
        match ahead {
            Some(ahead) if !already_sent && skipped.is_empty() && recipients == 1 => {
                Self::Plain(message, accept_time, ahead)
            }
            _ => Self::Whole { message, already_sent, skipped, recipients, accept_time, ahead },
        }
    }
}

impl From<Stored> for Receipt {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Plain(message, accept_time, ahead) => Self {
                message,
                already_sent: false,
                skipped: Vec::new(),
                recipients: 1,
                accept_time,
                ahead: Some(ahead),
            },
            Stored::Whole { message, already_sent, skipped, recipients, accept_time, ahead } => {
                Self { message, already_sent, skipped, recipients, accept_time, ahead }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Receipt {
        Receipt {
            message: MessageId::new(7).expect("not 0"),
            already_sent: false,
            skipped: Vec::new(),
            recipients: 1,
            accept_time: WallTime(1_795_637_574_800),
            ahead: Some(3),
        }
    }

    #[test]
    fn every_receipt_reads_as_it_was() {
        let full = Receipt { skipped: vec!["ann".to_owned()], ahead: None, ..plain() };
        let again = Receipt { already_sent: true, ahead: None, ..plain() };
        let others = Receipt { recipients: 2, ahead: None, ..plain() };
        for receipt in [plain(), full, again, others] {
            let json = serde_json::to_string(&receipt).expect("plain data");
            assert_eq!(serde_json::from_str::<Receipt>(&json).expect("a receipt"), receipt);
        }
    }

    #[test]
    fn a_plain_one_is_short_and_older_ones_are_read() {
        let json = serde_json::to_string(&plain()).expect("plain data");
        assert_eq!(json, "[7,1795637574800,3]");
        let older = r#"{"message":7,"already_sent":false,"skipped":[],"recipients":1,"accept_time":1795637574800,"ahead":3}"#;
        assert_eq!(serde_json::from_str::<Receipt>(older).expect("a receipt"), plain());
        let oldest = r#"{"message":7,"already_sent":false,"skipped":[],"recipients":1,"accept_time":1795637574800}"#;
        let unknown = Receipt { ahead: None, ..plain() };
        assert_eq!(serde_json::from_str::<Receipt>(oldest).expect("a receipt"), unknown);
    }
}
