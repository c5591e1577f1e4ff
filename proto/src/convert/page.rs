//! Page tokens: where the next page of a list begins, and of which list.
//!
//! A token is the version, a message with the place and the list, and a checksum, in base64url.
//! Invariant: only texts that [`Token::encode`] made are accepted, and only for the RPC and the
//! filter that they were made for. A place gives no access: each page applies the rights of its
//! caller.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use sha2::{Digest as _, Sha256};

use super::Invalid;

/// Name of the field with a token.
pub const FIELD: &str = "page_token";
/// Version of the format; a token of another version is refused.
const VERSION: u8 = 1;
/// Bytes of the checksum.
const CHECK_BYTES: usize = 4;

/// The list that a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    rpc: u32,
    filter: u64,
}

impl List {
    /// Returns the list of an RPC with this filter: a request whose fields for pages are not set.
    #[must_use]
    pub fn new(rpc: &str, filter: &impl Message) -> Self {
        let [a, b, c, d, ..] = digest(rpc.as_bytes());
        let [e, f, g, h, i, j, k, l, ..] = digest(&filter.encode_to_vec());
        Self {
            rpc: u32::from_le_bytes([a, b, c, d]),
            filter: u64::from_le_bytes([e, f, g, h, i, j, k, l]),
        }
    }
}

/// The place of the last row of a page; each RPC decides which fields it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The id, or the first part of the key.
    pub first: u64,
    /// The second part of the key.
    pub second: u64,
    /// The name.
    pub name: String,
}

/// A token as it is encoded.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Token {
    #[prost(fixed32, tag = "1")]
    rpc: u32,
    #[prost(fixed64, tag = "2")]
    filter: u64,
    #[prost(uint64, tag = "3")]
    first: u64,
    #[prost(uint64, tag = "4")]
    second: u64,
    #[prost(string, tag = "5")]
    name: String,
}

impl Token {
    /// Returns the token of a place in a list.
    #[must_use]
    pub fn new(list: List, place: Place) -> Self {
        let (List { rpc, filter }, Place { first, second, name }) = (list, place);
        Self { rpc, filter, first, second, name }
    }

    /// Returns the text of a token.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(self.encode_to_vec());
        let check = digest(&bytes);
        bytes.extend(&check[..CHECK_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the token of a text.
    pub fn decode(text: &str) -> Result<Self, Invalid> {
        Self::parse(text).filter(|token| token.encode() == text).ok_or_else(|| {
            Invalid::new(
                FIELD,
                "is not a token of this broker; pass `next_page_token` on unchanged, or begin \
                 again without a token",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (checked, check) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
        let (version, message) = checked.split_first()?;
        if *version != VERSION || digest(checked)[..CHECK_BYTES] != *check {
            return None;
        }
        <Self as Message>::decode(message).ok()
    }

    /// Returns the place, if the token was made for this list.
    pub fn place_in(self, list: List) -> Result<Place, Invalid> {
        let Self { rpc, filter, first, second, name } = self;
        if rpc != list.rpc {
            return Err(Invalid::new(
                FIELD,
                "is a token of another RPC; begin again without a token",
            ));
        }
        if filter != list.filter {
            return Err(Invalid::new(
                FIELD,
                "was made with another filter; repeat the fields of the first page, or begin \
                 again without a token",
            ));
        }
        Ok(Place { first, second, name })
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::v1::ListMessagesRequest;

    fn of_agent(agent: &str) -> ListMessagesRequest {
        ListMessagesRequest { agent: agent.to_owned(), ..ListMessagesRequest::default() }
    }

    fn places() -> impl Strategy<Value = Place> {
        (any::<u64>(), any::<u64>(), ".{0,70}").prop_map(|(first, second, name)| Place {
            first,
            second,
            name,
        })
    }

    proptest! {
        #[test]
        fn a_token_returns_its_place(place in places()) {
            let list = List::new("ListMessages", &of_agent("ada"));
            let text = Token::new(list, place.clone()).encode();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
            let found = Token::decode(&text).and_then(|token| token.place_in(list));
            prop_assert_eq!(found, Ok(place));
        }

        #[test]
        fn a_changed_token_is_refused(place in places(), at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_-]") {
            let text = Token::new(List::new("ListMessages", &of_agent("")), place).encode();
            let at = at.index(text.len());
            let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(Token::decode(&changed).is_ok(), changed == text);
            prop_assert!(Token::decode(&text[..at]).is_err());
        }

        #[test]
        fn other_texts_are_refused(text in ".{0,40}") {
            prop_assert!(Token::decode(&text).is_err());
        }
    }

    #[test]
    fn a_token_is_of_one_rpc_and_one_filter() {
        let list = List::new("ListMessages", &of_agent("ada"));
        let token = Token::new(list, Place { first: 7, ..Place::default() });
        let sentence = |list| token.clone().place_in(list).expect_err("another list").sentence;
        assert!(
            sentence(List::new("ListTurns", &of_agent("ada"))).starts_with("is a token of another")
        );
        let other = List::new("ListMessages", &of_agent("bob"));
        assert!(sentence(other).starts_with("was made with another filter"));
    }
}
