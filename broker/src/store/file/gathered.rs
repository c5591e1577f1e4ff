//! Writes to a file that are kept until they can be done together.
//!
//! Invariant: the file gets what was written, in the order of the writes, and a read finds it.
//! After a failed write, of which the one who writes gets the error, nothing is kept.

/// Bytes that are kept at most: 31 pages of the log, more than most commits have.
const BYTES_MAX: usize = 128 * 1024;

/// What is to be written, from one place of the file on.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    offset: u64,
    bytes: Vec<u8>,
}

impl Gathered {
    /// Adds a write. What it does not continue, or leaves no room for, is written first. If that
    /// fails, all is forgotten, and the write has failed.
    pub(super) fn add<E>(
        &mut self,
        offset: u64,
        data: &[u8],
        write: impl Fn(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let has_room = self.bytes.len() + data.len() <= BYTES_MAX;
        if offset != self.end() || !has_room {
            self.finish(&write)?;
            self.offset = offset;
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Writes what is kept. If that fails, all is forgotten.
    pub(super) fn finish<E>(
        &mut self,
        write: impl Fn(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let written = self.write(write);
        self.forget();
        written
    }

    /// Writes what is kept before a part of the file is read. If that fails, it is still kept.
    pub(super) fn before_read<E>(
        &mut self,
        offset: u64,
        len: u64,
        write: impl Fn(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if offset < self.end() && self.offset < offset + len { self.write(write) } else { Ok(()) }
    }

    fn write<E>(&mut self, write: impl Fn(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        if !self.bytes.is_empty() {
            write(self.offset, &self.bytes)?;
        }
        self.forget();
        Ok(())
    }

    /// The next write continues where this one would have ended.
    fn forget(&mut self) {
        self.offset = self.end();
        self.bytes.clear();
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A file, and the writes to it.
    #[derive(Default)]
    struct File {
        writes: RefCell<Vec<(u64, Vec<u8>)>>,
        is_full: bool,
    }

    impl File {
        fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), &'static str> {
            if self.is_full {
                return Err("full");
            }
            self.writes.borrow_mut().push((offset, bytes.to_vec()));
            Ok(())
        }

        fn writes(&self) -> Vec<(u64, Vec<u8>)> {
            self.writes.take()
        }
    }

    /// Adds writes, each at a place.
    fn add(
        gathered: &mut Gathered,
        file: &File,
        writes: &[(u64, &[u8])],
    ) -> Result<(), &'static str> {
        let write = |offset, bytes: &[u8]| file.write(offset, bytes);
        writes.iter().try_for_each(|(offset, data)| gathered.add(*offset, data, write))
    }

    #[test]
    fn writes_that_follow_each_other_are_one() {
        let (mut gathered, file) = (Gathered::default(), File::default());
        add(&mut gathered, &file, &[(8, b"ab"), (10, b"c"), (11, b"de")]).expect("there is room");
        assert_eq!(file.writes(), []);
        gathered.finish(|offset, bytes| file.write(offset, bytes)).expect("there is room");
        assert_eq!(file.writes(), [(8, b"abcde".to_vec())]);
        gathered.finish(|offset, bytes| file.write(offset, bytes)).expect("nothing is kept");
        add(&mut gathered, &file, &[(13, b"f")]).expect("there is room");
        assert_eq!(file.writes(), []);
    }

    #[test]
    fn a_write_elsewhere_and_a_long_one_come_in_their_order() {
        let (mut gathered, file) = (Gathered::default(), File::default());
        add(&mut gathered, &file, &[(0, b"ab"), (1, b"c"), (2, b"d")]).expect("there is room");
        assert_eq!(file.writes(), [(0, b"ab".to_vec())]);
        add(&mut gathered, &file, &[(3, &[7; BYTES_MAX])]).expect("there is room");
        assert_eq!(file.writes(), [(1, b"cd".to_vec())]);
        add(&mut gathered, &file, &[(3 + BYTES_MAX as u64, b"e")]).expect("there is room");
        assert_eq!(file.writes(), [(3, vec![7; BYTES_MAX])]);
    }

    #[test]
    fn a_read_finds_what_is_kept() {
        let (mut gathered, file) = (Gathered::default(), File::default());
        let write = |offset, bytes: &[u8]| file.write(offset, bytes);
        add(&mut gathered, &file, &[(8, b"abcd")]).expect("there is room");
        for (offset, len) in [(0, 8), (12, 8)] {
            gathered.before_read(offset, len, write).expect("there is room");
            assert_eq!(file.writes(), [], "{offset}");
        }
        gathered.before_read(11, 1, write).expect("there is room");
        assert_eq!(file.writes(), [(8, b"abcd".to_vec())]);
    }

    #[test]
    fn a_failed_write_is_forgotten_and_one_for_a_read_is_not() {
        let (mut gathered, mut file) = (Gathered::default(), File::default());
        file.is_full = true;
        add(&mut gathered, &file, &[(8, b"ab")]).expect("it is kept");
        gathered.before_read(8, 1, |at, bytes| file.write(at, bytes)).expect_err("it is full");
        file.is_full = false;
        gathered.before_read(8, 1, |at, bytes| file.write(at, bytes)).expect("there is room");
        assert_eq!(file.writes(), [(8, b"ab".to_vec())]);

        file.is_full = true;
        add(&mut gathered, &file, &[(10, b"c")]).expect("it is kept");
        gathered.finish(|at, bytes| file.write(at, bytes)).expect_err("it is full");
        add(&mut gathered, &file, &[(10, b"d")]).expect("it is kept");
        add(&mut gathered, &file, &[(0, b"e")]).expect_err("it is full");
        file.is_full = false;
        gathered.finish(|at, bytes| file.write(at, bytes)).expect("nothing is kept");
        assert_eq!(file.writes(), []);
    }
}
