//! The metrics of a real broker, as a collector reads them.

mod disk;
mod door;
mod packaged;
mod page;
mod scrape;
