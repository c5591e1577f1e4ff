//! Statements: prepared once for each connection, and run with values.

use rusqlite::{Connection, OptionalExtension as _, Params, Result};

use super::columns::Columns;

/// Returns all rows of a query.
pub(super) fn all<T: Columns>(conn: &Connection, sql: &str, values: impl Params) -> Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(values, |row| T::read(row, 0))?.collect()
}

/// Returns the first row of a query, if there is one.
pub(super) fn first<T: Columns>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<Option<T>> {
    one(conn, sql, values).optional()
}

/// Returns the row of a query that always has one.
pub(super) fn one<T: Columns>(conn: &Connection, sql: &str, values: impl Params) -> Result<T> {
    conn.prepare_cached(sql)?.query_row(values, |row| T::read(row, 0))
}

/// Runs a statement that changes rows; returns how many it changed.
pub(super) fn change(conn: &Connection, sql: &str, values: impl Params) -> Result<usize> {
    conn.prepare_cached(sql)?.execute(values)
}

/// Runs a statement that changes rows, however many.
pub(super) fn run(conn: &Connection, sql: &str, values: impl Params) -> Result<()> {
    change(conn, sql, values).map(drop)
}

/// Returns the rows of a page and whether there are more: at most `rows`, and well under one
/// reply's bytes. The query returns one row more than that.
pub(super) fn page<T: Columns>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    rows: u32,
    bytes_of: impl Fn(&T) -> usize,
) -> Result<(Vec<T>, bool)> {
    let mut select = conn.prepare_cached(sql)?;
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
}

/// Adds a row: `insert!(tx, into table { column: value, … })`.
macro_rules! insert {
    ($tx:expr, into $table:ident {
        $first:ident: $first_value:expr $(, $column:ident: $value:expr)* $(,)?
    }) => {
        $crate::store::statement::run(
            $tx,
            concat!(
                "INSERT INTO ", stringify!($table), " (", stringify!($first),
                $(", ", stringify!($column),)* ") VALUES (?", $(insert!(@value $column),)* ")",
            ),
            rusqlite::params![$first_value $(, $value)*],
        )
    };
    (@value $column:ident) => { ", ?" };
}

pub(super) use insert;

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
