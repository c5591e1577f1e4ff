//! Below SQLite: the log's writes are gathered; everything else the default VFS does as ever.
//!
//! SQLite writes each page of the log in two calls, the header of its frame and the page, and a
//! commit of one message has five pages. Gathered they are one call to the host, before the sync.
//! For the connection that writes, of which a database has one at a time.
//!
//! A log is laid out as `Front` with the host's file after it, in memory that SQLite provides
//! (`szOsFile` bytes). Any other file is opened in place. Invariant: the host's log has all that
//! SQLite has written when it is synced, and so before another connection looks for the commit:
//! commits sync last (`synchronous=full`, and no sector is padded after the sync, because the
//! host's VFS has SQLITE_IOCAP_POWERSAFE_OVERWRITE). Outside of a commit nothing is gathered, apart
//! from the pages of a migration, whose connection is closed if it fails (`cache_spill=off`). What
//! no commit has synced is not written at the close.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::store::file::gathered::Gathered;
use crate::store::file::timing::timed;

const NAME: &CStr = c"hive";

/// The VFS, with the one to which it passes everything on. Never freed.
#[repr(C)]
struct Gathering {
    vfs: sqlite3_vfs,
    host: *mut sqlite3_vfs,
}

/// A log; the host's file follows it in memory. `gathered` is a box from the open to the close.
#[repr(C, align(8))]
struct Front {
    base: sqlite3_file,
    gathered: *mut Gathered,
}

/// Returns the name of the VFS, for opening a connection with it. If the process has another
/// default VFS than it had before, it is registered again, over that one.
pub(super) fn name() -> rusqlite::Result<&'static CStr> {
    static OVER: AtomicPtr<sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: with a null pointer this returns the default VFS, or null.
    let host = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
    if host.is_null() || (OVER.load(Ordering::Acquire) != host && !register(host)) {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), None));
    }
    OVER.store(host, Ordering::Release);
    Ok(NAME)
}

fn register(host: *mut sqlite3_vfs) -> bool {
    // SAFETY: it points to a VFS that is registered. A bitwise copy shares its functions and its
    // data for them, neither of which is ever freed.
    let mut vfs = unsafe { ptr::read(host) };
    let Ok(front) = c_int::try_from(size_of::<Front>()) else { return false };
    vfs.szOsFile += front;
    vfs.pNext = ptr::null_mut();
    vfs.zName = NAME.as_ptr();
    vfs.xOpen = Some(open);
    let gathering = Box::leak(Box::new(Gathering { vfs, host }));
    // SAFETY: the VFS is complete and leaked, so it lives as long as the process.
    unsafe { ffi::sqlite3_vfs_register(&raw mut gathering.vfs, 0) == ffi::SQLITE_OK }
}

/// Returns the host's file behind a log.
///
/// # Safety
/// `file` is a file in `szOsFile` bytes of memory.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: the memory is as long as both together, and aligned to 8 bytes, as is the length of
    // the front.
    unsafe { file.cast::<u8>().add(size_of::<Front>()).cast() }
}

/// # Safety
/// `file` is an open log.
unsafe fn gathered<'a>(file: *mut sqlite3_file) -> &'a mut Gathered {
    // SAFETY: it lives until the close, and SQLite uses a file from one thread at a time.
    unsafe { &mut *(*file.cast::<Front>()).gathered }
}

/// Calls a method of the host's file; without it, returns that there is no such operation.
///
/// SAFETY of its use: the file is an open log, and the arguments are those that SQLite gave for it.
macro_rules! call {
    ($file:expr, $method:ident $(, $arg:expr)*) => {{
        let inner = inner($file);
        match (*(*inner).pMethods).$method {
            Some(method) => method(inner $(, $arg)*),
            None => ffi::SQLITE_NOTFOUND,
        }
    }};
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls it with the VFS that was registered, which is the front of this.
    let host = unsafe { (*vfs.cast::<Gathering>()).host };
    // SAFETY: the host's VFS lives for ever.
    let Some(real) = (unsafe { (*host).xOpen }) else { return ffi::SQLITE_ERROR };
    if flags & ffi::SQLITE_OPEN_WAL == 0 {
        // SAFETY: these are SQLite's own arguments, and the memory is longer than the host's VFS
        // asked for.
        return unsafe { real(host, name, file, flags, out_flags) };
    }
    // SAFETY: the memory is of `szOsFile` bytes; the place behind the front is the host's. A file
    // without methods is not open, and SQLite does not close it.
    let behind = unsafe {
        (*file).pMethods = ptr::null();
        let behind = inner(file);
        (*behind).pMethods = ptr::null();
        behind
    };
    // SAFETY: SQLite's own arguments, with the memory that the host's VFS asked for.
    let opened = unsafe { real(host, name, behind, flags, out_flags) };
    // SAFETY: a host's file with methods is open, and has to be closed if it failed. The memory of
    // the front is ours.
    unsafe {
        if opened == ffi::SQLITE_OK {
            (*file.cast::<Front>()).gathered = Box::into_raw(Box::default());
            (*file).pMethods = &raw const METHODS;
        } else if let Some(close) = (*behind).pMethods.as_ref().and_then(|methods| methods.xClose) {
            close(behind);
        }
    }
    opened
}

/// The methods of a log, whose locks and shared memory are those of its database.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Writes to the host's file.
///
/// # Safety
/// `file` is an open log.
unsafe fn host_write(file: *mut sqlite3_file, offset: u64, bytes: &[u8]) -> Result<(), c_int> {
    let len = c_int::try_from(bytes.len()).map_err(|_| ffi::SQLITE_TOOBIG)?;
    let offset = sqlite3_int64::try_from(offset).map_err(|_| ffi::SQLITE_TOOBIG)?;
    // SAFETY: an open log, and bytes of this length.
    done(unsafe { call!(file, xWrite, bytes.as_ptr().cast(), len, offset) })
}

fn done(code: c_int) -> Result<(), c_int> {
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

fn code(done: Result<(), c_int>) -> c_int {
    done.err().unwrap_or(ffi::SQLITE_OK)
}

/// A place or a length that SQLite gives, which is never negative.
fn number(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}

/// Writes what is gathered to the host's file, then does `next` with it.
///
/// # Safety
/// `file` is an open log.
unsafe fn then(file: *mut sqlite3_file, next: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: an open log.
    let all = unsafe { gathered(file).finish(|offset, bytes| host_write(file, offset, bytes)) };
    code(all.and_then(|()| done(next())))
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open log, which is not used after this; what it has gathered came from a box.
    unsafe {
        let front = file.cast::<Front>();
        drop(Box::from_raw((*front).gathered));
        (*front).gathered = ptr::null_mut();
        call!(file, xClose)
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    out: *mut c_void,
    len: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: an open log, and SQLite's own arguments.
    unsafe {
        let all = gathered(file).before_read(number(offset), number(len), |offset, bytes| {
            host_write(file, offset, bytes)
        });
        code(all.and_then(|()| done(call!(file, xRead, out, len, offset))))
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    len: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives a buffer of this length for an open log.
    unsafe {
        let data = std::slice::from_raw_parts(data.cast(), usize::try_from(len).unwrap_or(0));
        let host = |offset, bytes: &[u8]| host_write(file, offset, bytes);
        code(gathered(file).add(number(offset), data, host))
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { then(file, || call!(file, xTruncate, len)) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { then(file, || timed(|| call!(file, xSync, flags))) }
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { then(file, || call!(file, xFileSize, out)) }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { call!(file, xLock, level) }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { call!(file, xUnlock, level) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open log, and SQLite's own argument.
    unsafe { call!(file, xCheckReservedLock, out) }
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, op: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: an open log, and SQLite's own arguments.
    unsafe { call!(file, xFileControl, op, arg) }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open log.
    unsafe { call!(file, xSectorSize) }
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open log.
    unsafe { call!(file, xDeviceCharacteristics) }
}
