//! Columns: one list for the fields of a row, the columns of its SELECT, and its reader.
//!
//! Invariant: the compiler fixes the position of each column, and rejects a field whose SQL has
//! another number of columns than its type.

use rusqlite::{Result, Row};

/// A value in neighbouring columns of a row.
pub(crate) trait Columns: Sized {
    /// The number of columns.
    const WIDTH: usize = 1;

    /// Reads the value that begins at the column `at`.
    fn read(row: &Row<'_>, at: usize) -> Result<Self>;
}

/// `None` if the first column is NULL.
impl<T: Columns> Columns for Option<T> {
    const WIDTH: usize = T::WIDTH;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let is_null = row.get_ref(at)? == rusqlite::types::ValueRef::Null;
        if is_null { Ok(None) } else { T::read(row, at).map(Some) }
    }
}

impl<T: Columns> Columns for Box<T> {
    const WIDTH: usize = T::WIDTH;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        T::read(row, at).map(Self::new)
    }
}

impl<A: Columns, B: Columns> Columns for (A, B) {
    const WIDTH: usize = A::WIDTH + B::WIDTH;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        Ok((A::read(row, at)?, B::read(row, at + A::WIDTH)?))
    }
}

impl<A: Columns, B: Columns, C: Columns> Columns for (A, B, C) {
    const WIDTH: usize = <(A, B)>::WIDTH + C::WIDTH;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let (a, b) = <(A, B)>::read(row, at)?;
        Ok((a, b, C::read(row, at + <(A, B)>::WIDTH)?))
    }
}

/// Defines how a struct is read from a row: for each field its type and the SQL of its columns.
///
/// The constant is the list for SELECT. With `struct` the macro also defines the struct. A field
/// with `=> function` is read by that function. Fields after `+` have no column and are empty.
macro_rules! columns {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident, $list_vis:vis const $list:ident {
            $(
                $(#[$doc:meta])*
                $field_vis:vis $field:ident: $type:ty = $sql:expr $(=> $read:path)?
            ),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        $vis struct $name { $($(#[$doc])* $field_vis $field: $type),+ }
        columns! { $list_vis const $list: $name { $($field: $type = $sql $(=> $read)?),+ } }
    };
    (
        $(#[$doc:meta])*
        $vis:vis const $list:ident: $name:ident {
            $($field:ident: $type:ty = $sql:expr $(=> $read:path)?),+ $(,)?
        } $(+ $empty:ident)*
    ) => {
        $(#[$doc])*
        $vis const $list: &str = {
            const PARTS: &[&str] = &[$($sql),+];
            const BYTES: [u8; $crate::store::columns::joined_len(PARTS, ", ")] =
                $crate::store::columns::joined(PARTS, ", ");
            $crate::store::columns::text(&BYTES)
        };

        impl $crate::store::columns::Columns for $name {
            const WIDTH: usize = 0 $(+ columns!(@width $type))+;

            fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Self> {
                #[allow(non_camel_case_types, clippy::enum_variant_names)]
                enum Field { $($field),+ }
                const WIDTHS: &[usize] = &[
                    $($crate::store::columns::checked_width($sql, columns!(@width $type))),+
                ];
                Ok(Self {
                    $($field: columns!(@read $type $(, $read)?)(
                        row,
                        at + const {
                            $crate::store::columns::position(WIDTHS, Field::$field as usize)
                        },
                    )?,)+
                    $($empty: Default::default(),)*
                })
            }
        }
    };
    (@width $type:ty) => { <$type as $crate::store::columns::Columns>::WIDTH };
    (@read $type:ty) => { <$type as $crate::store::columns::Columns>::read };
    (@read $type:ty, $read:path) => { $read };
}

pub(super) use columns;

/// Writes the SQL of the name of an agent, by its key; of a purged agent, the name that it had.
macro_rules! name_of {
    ($key:literal) => {
        concat!("(SELECT coalesce(purged_name, name) FROM agent WHERE id = ", $key, ")")
    };
}

pub(super) use name_of;

/// Returns the position of a field's first column.
pub(super) const fn position(widths: &[usize], field: usize) -> usize {
    let (mut position, mut before) = (0, 0);
    while before < field {
        position += widths[before];
        before += 1;
    }
    position
}

/// Returns the width of a field, whose SQL must have as many columns.
pub(super) const fn checked_width(sql: &str, width: usize) -> usize {
    let (bytes, mut at, mut depth, mut columns) = (sql.as_bytes(), 0, 0, 1);
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => columns += 1,
            _ => {}
        }
        at += 1;
    }
    assert!(columns == width, "the SQL of a field has another number of columns than its type");
    width
}

/// Writes SQL from constant parts, without a separator.
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const BYTES: [u8; $crate::store::columns::joined_len(PARTS, "")] =
            $crate::store::columns::joined(PARTS, "");
        const { $crate::store::columns::text(&BYTES) }
    }};
}

pub(super) use sql;

/// Returns the length of parts with a separator between them.
pub(super) const fn joined_len(parts: &[&str], separator: &str) -> usize {
    let (mut len, mut part) = (separator.len() * (parts.len() - 1), 0);
    while part < parts.len() {
        len += parts[part].len();
        part += 1;
    }
    len
}

/// Returns the bytes of parts with a separator between them.
pub(super) const fn joined<const LEN: usize>(parts: &[&str], separator: &str) -> [u8; LEN] {
    let (mut joined, mut len, mut part) = ([0; LEN], 0, 0);
    while part < parts.len() {
        if part > 0 {
            (joined, len) = copied(joined, len, separator);
        }
        (joined, len) = copied(joined, len, parts[part]);
        part += 1;
    }
    joined
}

const fn copied<const LEN: usize>(
    mut to: [u8; LEN],
    mut len: usize,
    from: &str,
) -> ([u8; LEN], usize) {
    let (bytes, mut at) = (from.as_bytes(), 0);
    while at < bytes.len() {
        to[len] = bytes[at];
        (len, at) = (len + 1, at + 1);
    }
    (to, len)
}

/// Returns a text before and after its first part of this kind, which it must have.
pub(super) const fn around<'t>(text: &'t str, part: &str) -> (&'t str, &'t str) {
    let (bytes, wanted) = (text.as_bytes(), part.as_bytes());
    let mut at = 0;
    while at + wanted.len() <= bytes.len() {
        let mut same = 0;
        while same < wanted.len() && bytes[at + same] == wanted[same] {
            same += 1;
        }
        if same == wanted.len() {
            return (text.split_at(at).0, text.split_at(at + same).1);
        }
        at += 1;
    }
    panic!("the text has no such part")
}

/// Returns joined texts as a text.
pub(super) const fn text(bytes: &[u8]) -> &str {
    match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("parts of texts"),
    }
}
