//! Pages of lists: which rows a request asks for, and the token of the next page.
//!
//! Invariants: every RPC that lists is in the table below, and its filter is its request without
//! the two fields for pages. A page size above the maximum is lowered, never refused. A place names
//! the last row of a page by its key, so a page costs no more the further it is from the begin, and
//! added rows neither repeat nor hide another.

use hive_core::id::{MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::limits::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, SEARCH_ROWS_DEFAULT, SEARCH_ROWS_MAX};
use hive_proto::convert::Invalid;
use hive_proto::convert::page::{FIELD, List, Place, Token};
use hive_proto::v1;
use prost::Message;

use crate::engine::operator::operate::DeliveryCursor;
use crate::engine::operator::tree::FoundCursor;
use crate::store::AgentKey;

/// The number of rows of a page: without a wish of the caller, and at most.
type Rows = (u32, u32);

const USUAL: Rows = (PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX);
const SEARCH: Rows = (SEARCH_ROWS_DEFAULT, SEARCH_ROWS_MAX);

/// The key of the last row of a page.
pub(in crate::rpc) trait Cursor: Sized {
    /// Returns the place of this row.
    fn place(self) -> Place;

    /// Returns the row of a place; `None` if no row has such a key.
    fn at(place: Place) -> Option<Self>;
}

impl Cursor for u64 {
    fn place(self) -> Place {
        Place { first: self, ..Place::default() }
    }

    fn at(place: Place) -> Option<Self> {
        Some(place.first)
    }
}

macro_rules! ids {
    ($($id:ident),+) => {$(
        impl Cursor for $id {
            fn place(self) -> Place {
                self.get().place()
            }

            fn at(place: Place) -> Option<Self> {
                Self::new(place.first)
            }
        }
    )+};
}

ids!(MessageId, QuestionId, ReminderId, ScheduleId, TurnId);

impl Cursor for String {
    fn place(self) -> Place {
        Place { name: self, ..Place::default() }
    }

    fn at(place: Place) -> Option<Self> {
        Some(place.name)
    }
}

impl Cursor for DeliveryCursor {
    fn place(self) -> Place {
        let (message, AgentKey(agent)) = self;
        Place { first: message.get(), second: agent.unsigned_abs(), ..Place::default() }
    }

    fn at(place: Place) -> Option<Self> {
        Some((MessageId::new(place.first)?, AgentKey(i64::try_from(place.second).ok()?)))
    }
}

impl Cursor for FoundCursor {
    fn place(self) -> Place {
        let Self { group, name } = self;
        Place { first: u64::from(group), name, ..Place::default() }
    }

    fn at(place: Place) -> Option<Self> {
        Some(Self { group: u8::try_from(place.first).ok()?, name: place.name })
    }
}

/// A request for a page of a list.
pub(in crate::rpc) trait Paged: Message {
    /// The name of its RPC.
    const RPC: &'static str;
    /// The number of rows of its pages.
    const ROWS: Rows;
    /// The key of its rows.
    type Cursor: Cursor;

    /// Removes the size and the token, so that the filter is left.
    fn take_page(&mut self) -> (u32, String);
}

macro_rules! paged {
    ($($message:ident: $cursor:ty, $rows:expr;)+) => {$(
        impl Paged for v1::$message {
            const RPC: &'static str =
                stringify!($message).split_at(stringify!($message).len() - "Request".len()).0;
            const ROWS: Rows = $rows;
            type Cursor = $cursor;

            fn take_page(&mut self) -> (u32, String) {
                (std::mem::take(&mut self.page_size), std::mem::take(&mut self.page_token))
            }
        }
    )+

    #[cfg(test)]
    const NAMES: &[&str] = &[$(<v1::$message as Paged>::RPC),+];
    };
}

paged! {
    FindAgentsRequest: FoundCursor, USUAL;
    ListAgentsRequest: String, USUAL;
    ListChildrenRequest: String, USUAL;
    ListDeadLettersRequest: DeliveryCursor, USUAL;
    ListDeliveriesRequest: DeliveryCursor, USUAL;
    ListEventsRequest: u64, USUAL;
    ListLooseEndsRequest: u64, USUAL;
    ListMessagesRequest: MessageId, USUAL;
    ListPurgesRequest: u64, USUAL;
    ListQuestionsRequest: QuestionId, USUAL;
    ListRecipientsRequest: String, USUAL;
    ListRemindersRequest: ReminderId, USUAL;
    ListSchedulesRequest: ScheduleId, USUAL;
    ListTurnsRequest: TurnId, USUAL;
    SearchMessagesRequest: u64, SEARCH;
}

/// The rows that a request asks for.
#[derive(Clone, Debug)]
pub(in crate::rpc) struct Page<C> {
    /// The row after which the page begins; `None` for the first page.
    pub after: Option<C>,
    /// The maximum number of rows.
    pub rows: u32,
    list: List,
}

/// Returns the page that a request asks for, and leaves the filter in the request.
pub(in crate::rpc) fn take<M: Paged>(request: &mut M) -> Result<Page<M::Cursor>, Invalid> {
    let (size, token) = request.take_page();
    let list = List::new(M::RPC, request);
    let after = if token.is_empty() {
        None
    } else {
        let place = Token::decode(&token)?.place_in(list)?;
        let after = M::Cursor::at(place);
        Some(
            after
                .ok_or_else(|| Invalid::new(FIELD, "names no row; begin again without a token"))?,
        )
    };
    let (default, max) = M::ROWS;
    let rows = if size == 0 { default } else { size.min(max) };
    Ok(Page { after, rows, list })
}

impl<C: Cursor> Page<C> {
    /// Returns the token of the page after this row; empty at the end.
    pub(in crate::rpc) fn next(&self, last: Option<C>) -> String {
        last.map(|last| Token::new(self.list, last.place()).encode()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn every_list_of_the_contract_has_pages() {
        let set = FileDescriptorSet::decode(hive_proto::FILE_DESCRIPTOR_SET).expect("descriptors");
        let has = |message: &str, fields: &[&str]| {
            let name = message.rsplit('.').next().unwrap_or_default();
            let mut messages = set.file.iter().flat_map(|file| &file.message_type);
            let found = messages.find(|message| message.name() == name).expect("a message");
            fields.iter().all(|wanted| found.field.iter().any(|field| field.name() == *wanted))
        };
        let mut paged = BTreeSet::new();
        for service in set.file.iter().flat_map(|file| &file.service) {
            for rpc in service.method.iter().filter(|rpc| !rpc.server_streaming()) {
                let name = rpc.name();
                let is_paged = has(rpc.input_type(), &["page_size", "page_token"])
                    && has(rpc.output_type(), &["next_page_token"]);
                let is_list = ["List", "Find", "Search"].iter().any(|verb| name.starts_with(verb));
                assert_eq!(is_list, is_paged, "{name}");
                if is_paged {
                    paged.insert(name);
                }
            }
        }
        assert_eq!(NAMES.iter().copied().collect::<BTreeSet<_>>(), paged);
    }

    #[test]
    fn a_size_is_lowered_and_a_token_comes_back() {
        let list = |page_size, page_token: &str| v1::ListTurnsRequest {
            page_size,
            page_token: page_token.to_owned(),
            agent: "ada".to_owned(),
        };
        for (size, rows) in [(0, 50), (1, 1), (500, 500), (501, 500), (u32::MAX, 500)] {
            let page = take(&mut list(size, "")).expect("a first page");
            assert_eq!((page.rows, page.after), (rows, None));
        }
        let mut first = list(1, "");
        let page = take(&mut first).expect("a first page");
        assert_eq!(first, list(0, ""), "the filter is left");
        assert_eq!(page.next(None), "");
        let token = page.next(TurnId::new(7));
        let second = take(&mut list(2, &token)).expect("a second page");
        assert_eq!((second.rows, second.after), (2, TurnId::new(7)));
    }
}
