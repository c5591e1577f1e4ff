//! Statements: prepared once for each connection, and run with values.
//!
//! The writer holds those that it has used.

use std::borrow::Borrow;

use hive_core::trace::Traced;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, Result, Statement, params_from_iter};

use super::columns::Columns;

/// The text of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sql<'s> {
    /// A text of the program. A transaction finds its statement by the address.
    Fixed(&'static str),
    /// Such a text, for a statement that reads nothing which only the writer's memory has, or whose
    /// caller knows that. A transaction writes nothing back before it.
    Direct(&'static str),
    /// A text that was put together.
    Made(&'s str),
}

impl From<&'static str> for Sql<'static> {
    fn from(text: &'static str) -> Self {
        Self::Fixed(text)
    }
}

impl<'s> From<&'s String> for Sql<'s> {
    fn from(text: &'s String) -> Self {
        Self::Made(text)
    }
}

/// What has prepared statements: a connection, or a transaction of the writer.
pub(crate) trait Statements {
    /// Does work with a prepared statement.
    fn prepared<T>(
        &self,
        sql: Sql<'_>,
        work: impl FnOnce(&mut Statement<'_>) -> Result<T>,
    ) -> Result<T>;
}

impl Statements for Connection {
    fn prepared<T>(
        &self,
        (Sql::Fixed(text) | Sql::Direct(text) | Sql::Made(text)): Sql<'_>,
        work: impl FnOnce(&mut Statement<'_>) -> Result<T>,
    ) -> Result<T> {
        work(&mut *self.prepare_cached(text)?)
    }
}

/// Returns all rows of a query.
pub(super) fn all<'s, T: Columns>(
    from: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
) -> Result<Vec<T>> {
    from.prepared(sql.into(), |select| select.query_map(values, |row| T::read(row, 0))?.collect())
}

/// Returns the first row of a query, if there is one.
pub(super) fn first<'s, T: Columns>(
    from: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
) -> Result<Option<T>> {
    one(from, sql, values).optional()
}

/// Returns the row of a query that always has one.
pub(super) fn one<'s, T: Columns>(
    from: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
) -> Result<T> {
    from.prepared(sql.into(), |select| select.query_row(values, |row| T::read(row, 0)))
}

/// Runs a statement that changes rows; returns how many it changed.
pub(super) fn change<'s>(
    to: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
) -> Result<usize> {
    to.prepared(sql.into(), |statement| statement.execute(values))
}

/// Runs a statement that changes rows, however many.
pub(super) fn run<'s>(
    to: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
) -> Result<()> {
    change(to, sql, values).map(drop)
}

/// Returns the rows of a page and whether there are more: at most `rows`, and well under one
/// reply's bytes. The query returns one row more than that.
pub(super) fn page<'s, T: Columns>(
    from: &impl Statements,
    sql: impl Into<Sql<'s>>,
    values: impl Params,
    rows: u32,
    bytes_of: impl Fn(&T) -> usize,
) -> Result<(Vec<T>, bool)> {
    from.prepared(sql.into(), |select| {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for row in select.query_map(values, |row| T::read(row, 0))? {
            let row = row?;
            bytes += bytes_of(&row);
            if page.len() == rows as usize
                || (bytes > hive_core::limits::PAGE_BYTES_MAX && !page.is_empty())
            {
                return Ok((page, true));
            }
            page.push(row);
        }
        Ok((page, false))
    })
}

/// Adds a row: `insert!(tx, into table { column: value, … })`.
macro_rules! insert {
    ($tx:expr, into $table:ident {
        $first:ident: $first_value:expr $(, $column:ident: $value:expr)* $(,)?
    }) => {
        $crate::store::statement::run(
            $tx,
            $crate::store::statement::Sql::Direct(concat!(
                "INSERT INTO ", stringify!($table), " (", stringify!($first),
                $(", ", stringify!($column),)* ") VALUES (?", $(insert!(@value $column),)* ")",
            )),
            rusqlite::params![$first_value $(, $value)*],
        )
    };
    (@value $column:ident) => { ", ?" };
}

pub(super) use insert;

/// Rows that one statement of [`insert_all`] adds.
pub(super) const ROWS_AT_ONCE: usize = 8;

/// A value of a row that is added, by its type.
pub(super) trait Bound<'v> {
    fn bound(self) -> ToSqlOutput<'v>;
}

impl Bound<'_> for i64 {
    fn bound(self) -> ToSqlOutput<'static> {
        ToSqlOutput::Owned(Value::Integer(self))
    }
}

impl Bound<'_> for u32 {
    fn bound(self) -> ToSqlOutput<'static> {
        i64::from(self).bound()
    }
}

impl<'v> Bound<'v> for &'v str {
    fn bound(self) -> ToSqlOutput<'v> {
        ToSqlOutput::Borrowed(ValueRef::Text(self.as_bytes()))
    }
}

impl<'v> Bound<'v> for &'v [u8] {
    fn bound(self) -> ToSqlOutput<'v> {
        ToSqlOutput::Borrowed(ValueRef::Blob(self))
    }
}

impl Bound<'_> for Traced {
    fn bound(self) -> ToSqlOutput<'static> {
        ToSqlOutput::Owned(Value::Blob(self.to_bytes()))
    }
}

impl<'v, T: Bound<'v>> Bound<'v> for Option<T> {
    fn bound(self) -> ToSqlOutput<'v> {
        self.map_or(ToSqlOutput::Owned(Value::Null), T::bound)
    }
}

/// Adds rows by statements for one row and for [`ROWS_AT_ONCE`].
pub(super) fn add_rows<T, const COLUMNS: usize>(
    to: &impl Statements,
    (one, many): (&'static str, &'static str),
    rows: &[impl Borrow<T>],
    values: fn(&T) -> [ToSqlOutput<'_>; COLUMNS],
) -> Result<()> {
    let (chunks, rest) = rows.as_chunks::<ROWS_AT_ONCE>();
    for rows in chunks {
        let values = rows.iter().flat_map(|row| values(row.borrow()));
        run(to, Sql::Direct(many), params_from_iter(values))?;
    }
    for row in rest {
        run(to, Sql::Direct(one), params_from_iter(values(row.borrow())))?;
    }
    Ok(())
}

/// Adds rows, several with one statement:
/// `insert_all!(tx, rows, |row: Type| into table { column: value, … })`.
macro_rules! insert_all {
    ($to:expr, $rows:expr, |$row:ident: $type:ty| into $table:ident {
        $first:ident: $first_value:expr $(, $column:ident: $value:expr)* $(,)?
    }) => {{
        use rusqlite::types::ToSqlOutput;
        use $crate::store::columns::sql;
        use $crate::store::statement::{Bound as _, ROWS_AT_ONCE, add_rows};
        const COLUMNS: usize = [stringify!($first) $(, stringify!($column))*].len();
        const INTO: &str = concat!(
            "INSERT INTO ", stringify!($table), " (", stringify!($first),
            $(", ", stringify!($column),)* ") VALUES "
        );
        const ROW: &str = concat!("(?", $(insert_all!(@value $column),)* ")");
        const ONE: &str = sql!(INTO, ROW);
        const MANY: &str = sql!(
            INTO, ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW
        );
        const _: () = assert!(ROWS_AT_ONCE == 8, "MANY has as many rows");
        fn values($row: &$type) -> [ToSqlOutput<'_>; COLUMNS] {
            [$first_value.bound() $(, $value.bound())*]
        }
        add_rows($to, (ONE, MANY), $rows, values)
    }};
    (@value $column:ident) => { ", ?" };
}

pub(super) use insert_all;

/// Writes columns of a row: `update!(tx, table { column: value, … } where { column: value, … })`.
macro_rules! update {
    ($tx:expr, $table:ident {
        $first:ident: $first_value:expr $(, $column:ident: $value:expr)* $(,)?
    } where {
        $first_key:ident: $first_key_value:expr $(, $key:ident: $key_value:expr)* $(,)?
    }) => {
        $crate::store::statement::run(
            $tx,
            concat!(
                "UPDATE ", stringify!($table), " SET ", stringify!($first), " = ?",
                $(", ", stringify!($column), " = ?",)*
                " WHERE ", stringify!($first_key), " = ?", $(" AND ", stringify!($key), " = ?",)*
            ),
            rusqlite::params![
                $first_value $(, $value)*, $first_key_value $(, $key_value)*
            ],
        )
    };
}

pub(super) use update;
