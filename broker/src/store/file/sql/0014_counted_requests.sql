-- Answers to requests of clients that count their calls. A request with any other id, or with a long answer, is in `request`.

-- Those that were written together, mostly of a commit. Blocks are made of all pages when there are many.
CREATE TABLE request_page (
    id      INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL,
    -- For each series: the caller's id, the RPC, the series, and for each number the digest of the content and the answer.
    answers TEXT NOT NULL
) STRICT;

-- Those of neighbouring numbers of a series, from `first` on.
CREATE TABLE request_block (
    caller_id INTEGER NOT NULL,
    rpc       TEXT NOT NULL,
    series    TEXT NOT NULL,
    first     INTEGER NOT NULL,
    -- None of them was answered later.
    time      INTEGER NOT NULL,
    -- For each number: the digest of the content and the answer.
    answers   TEXT NOT NULL,
    PRIMARY KEY (caller_id, rpc, series, first)
) STRICT, WITHOUT ROWID;
