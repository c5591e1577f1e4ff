//! The metrics of a real broker, as a collector reads them.

mod door;
mod page;
mod scrape;
