//! The shim between SQLite and the host's VFS, which has the `unsafe` of this crate.
//! The shim decides nothing; `disk` does.
//!
//! A file on a disk is laid out as `Shim` with the host's file after it, in memory that SQLite
//! provides (`szOsFile` bytes). A file on no disk is opened by the host's VFS in place, and is
//! unaffected. Invariant: `Shim::handle` is a `Box` that lives from a successful open to the close,
//! and the host's file after it is open for the same time.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::disk::{self, Handle};

/// The host's VFS.
struct Host(*mut sqlite3_vfs);
// SAFETY: a VFS that is registered is never changed or freed, and SQLite itself calls it from any
// thread.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

static HOST: OnceLock<Host> = OnceLock::new();

/// A file on a disk; the host's file follows it in memory.
#[repr(C, align(8))]
struct Shim {
    base: sqlite3_file,
    handle: *mut Handle,
}

/// Registers the shim as the default VFS of this process, once.
pub(crate) fn register() {
    HOST.get_or_init(|| {
        // This makes rusqlite configure SQLite first.
        drop(rusqlite::Connection::open_in_memory().expect("SQLite works in memory"));
        // SAFETY: SQLite is initialised; with a null pointer this answers the default VFS, which
        // lives as long as the process.
        let host = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        assert!(!host.is_null(), "the host has a VFS");
        // SAFETY: it points to a VFS; a bitwise copy shares its functions and its data for them,
        // neither of which is ever freed.
        let mut shim = Box::new(unsafe { ptr::read(host) });
        shim.szOsFile += c_int::try_from(size_of::<Shim>()).expect("a few bytes");
        shim.pNext = ptr::null_mut();
        shim.zName = c"hive-disk".as_ptr();
        shim.xOpen = Some(open);
        shim.xDelete = Some(delete);
        shim.xRandomness = Some(randomness);
        // SAFETY: the VFS is complete and leaked, so it lives as long as the process.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(shim), 1) };
        assert_eq!(registered, ffi::SQLITE_OK, "the shim is registered");
        Host(host)
    });
}

static SEEDED: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);

/// Makes SQLite's random numbers in this process depend on the seed; `None` restores true
/// randomness.
pub fn seed(seed: Option<u64>) {
    register();
    SEED.store(seed.unwrap_or(0), Ordering::SeqCst);
    SEEDED.store(seed.is_some(), Ordering::SeqCst);
    // SAFETY: with no buffer it makes SQLite forget the state of its generator, and ask the VFS for
    // a new one.
    unsafe { ffi::sqlite3_randomness(0, ptr::null_mut()) };
}

fn host() -> *mut sqlite3_vfs {
    HOST.get().expect("SQLite calls the shim after it was registered").0
}

/// Returns the host's file behind a file of the shim.
///
/// # Safety
/// `file` is a file of the shim, in `szOsFile` bytes of memory.
unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: the memory is as long as both together, and aligned to 8 bytes, as is the length of
    // the front.
    unsafe { file.cast::<u8>().add(size_of::<Shim>()).cast() }
}

/// # Safety
/// `file` is an open file of the shim.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a Handle {
    // SAFETY: the handle lives until the close, and SQLite calls nothing on a file at the same time
    // as its close or after it.
    unsafe { &*(*file.cast::<Shim>()).handle }
}

/// Calls a method of the host's file.
///
/// SAFETY of its use: the file is an open file of the shim, and the arguments are those that SQLite
/// gave for it.
macro_rules! call {
    ($file:expr, $method:ident $(, $arg:expr)*) => {{
        let inner = inner($file);
        ((*(*inner).pMethods).$method.expect(concat!("the host's file has ", stringify!($method))))(inner $(, $arg)*)
    }};
}

/// # Safety
/// `name` is null or a string of C.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: as the caller says; it lives as long as the call in which SQLite gave it.
    (!name.is_null())
        .then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let host = host();
    // SAFETY: the VFS lives for ever.
    let real = unsafe { (*host).xOpen }.expect("the host's VFS opens files");
    // SAFETY: SQLite gives a string or null.
    let Some((disk, short)) = unsafe { path(name) }.and_then(disk::find) else {
        // SAFETY: these are SQLite's own arguments, and the memory is longer than the host's VFS
        // asked for.
        return unsafe { real(host, name, file, flags, out_flags) };
    };
    // SAFETY: the memory is of `szOsFile` bytes; the place behind the front is the host's.
    let behind = unsafe {
        (*file).pMethods = ptr::null();
        let behind = inner(file);
        (*behind).pMethods = ptr::null();
        behind
    };
    // SAFETY: SQLite's own arguments, with the memory that the host's VFS asked for.
    let opened =
        disk::open(disk, short, flags, || unsafe { real(host, name, behind, flags, out_flags) });
    match opened {
        Ok(handle) => {
            // SAFETY: the host's file is open, so it has methods; the memory of the front is ours.
            unsafe {
                let shares =
                    (*(*behind).pMethods).iVersion >= 2 && (*(*behind).pMethods).xShmMap.is_some();
                (*file.cast::<Shim>()).handle = Box::into_raw(Box::new(handle));
                (*file).pMethods = if shares { &raw const SHARING } else { &raw const ALONE };
            }
            ffi::SQLITE_OK
        }
        Err(code) => {
            // SAFETY: a host's file with methods is open and has to be closed; the front has none,
            // so SQLite does not close it.
            unsafe {
                if let Some(close) = (*behind).pMethods.as_ref().and_then(|methods| methods.xClose)
                {
                    close(behind);
                }
            }
            code
        }
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    let host = host();
    // SAFETY: the VFS lives for ever, and the arguments are SQLite's own.
    let real =
        || unsafe { (*host).xDelete.expect("the host's VFS deletes files")(host, name, sync_dir) };
    // SAFETY: SQLite gives a string.
    match unsafe { path(name) }.and_then(disk::find) {
        Some((disk, short)) => disk::delete(&disk, &short, sync_dir != 0, real),
        None => real(),
    }
}

unsafe extern "C" fn randomness(_: *mut sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    if !SEEDED.load(Ordering::SeqCst) {
        let host = host();
        // SAFETY: the VFS lives for ever, and the arguments are SQLite's own.
        return unsafe { (*host).xRandomness.expect("the host's VFS is random")(host, len, out) };
    }
    // SAFETY: SQLite gives a buffer of this length.
    let buffer = unsafe {
        std::slice::from_raw_parts_mut(out.cast::<u8>(), usize::try_from(len).unwrap_or(0))
    };
    let mut state = SEED.load(Ordering::SeqCst);
    for chunk in buffer.chunks_mut(8) {
        // SplitMix64 (Steele, Lea, Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(word ^ (word >> 31)).to_le_bytes()[..chunk.len()]);
    }
    len
}

/// The methods of files whose host's file can share memory between processes.
static SHARING: sqlite3_io_methods = methods(3);
/// The methods of files that cannot.
static ALONE: sqlite3_io_methods = methods(1);

const fn methods(version: c_int) -> sqlite3_io_methods {
    sqlite3_io_methods {
        iVersion: version,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        xLock: Some(take_lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(check_reserved_lock),
        xFileControl: Some(file_control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(device_characteristics),
        xShmMap: Some(shm_map),
        xShmLock: Some(shm_lock),
        xShmBarrier: Some(shm_barrier),
        xShmUnmap: Some(shm_unmap),
        xFetch: Some(fetch),
        xUnfetch: Some(unfetch),
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open file of the shim, which is not used after this; its handle came from a box.
    unsafe {
        let closed = call!(file, xClose);
        let shim = file.cast::<Shim>();
        drop(Box::from_raw((*shim).handle));
        (*shim).handle = ptr::null_mut();
        closed
    }
}

fn at(offset: sqlite3_int64) -> u64 {
    u64::try_from(offset).expect("SQLite asks for no place before the file")
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    out: *mut c_void,
    len: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    let real = || unsafe { call!(file, xRead, out, len, offset) };
    // SAFETY: an open file of the shim.
    unsafe { handle(file) }.read(at(offset), usize::try_from(len).unwrap_or(0), real)
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    data: *const c_void,
    len: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives a buffer of this length.
    let data =
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(len).unwrap_or(0)) };
    let real = |part: &[u8]| {
        let len = c_int::try_from(part.len()).expect("it is no longer than what SQLite gave");
        // SAFETY: an open file of the shim, and a part of SQLite's bytes.
        unsafe { call!(file, xWrite, part.as_ptr().cast(), len, offset) }
    };
    // SAFETY: an open file of the shim.
    unsafe { handle(file) }.write(at(offset), data, real)
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    let real = || unsafe { call!(file, xTruncate, len) };
    // SAFETY: an open file of the shim.
    unsafe { handle(file) }.truncate(at(len), real)
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    // The host is not called: the disk decides what is durable, and a test need not wait for a real
    // sync. SAFETY: an open file of the shim.
    unsafe { handle(file) }.sync()
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe {
        if handle(file).is_off() { ffi::SQLITE_IOERR_FSTAT } else { call!(file, xFileSize, out) }
    }
}

unsafe extern "C" fn take_lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe {
        if handle(file).is_off() { ffi::SQLITE_IOERR_LOCK } else { call!(file, xLock, level) }
    }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe { call!(file, xUnlock, level) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe { call!(file, xCheckReservedLock, out) }
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, op: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe { call!(file, xFileControl, op, arg) }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open file of the shim.
    unsafe { call!(file, xSectorSize) }
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: an open file of the shim.
    unsafe { call!(file, xDeviceCharacteristics) }
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives a place for the answer, which must be null if there is none.
    unsafe { *out = ptr::null_mut() };
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    let real = move || unsafe { call!(file, xShmMap, page, size, extend, out) };
    // SAFETY: an open file of the shim.
    unsafe { handle(file) }.share(real)
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    let taken = flags & ffi::SQLITE_SHM_LOCK != 0;
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe {
        if taken && handle(file).is_off() {
            return ffi::SQLITE_IOERR_SHMLOCK;
        }
        call!(file, xShmLock, offset, count, flags)
    }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: an open file of the shim.
    unsafe { call!(file, xShmBarrier) }
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: an open file of the shim, and SQLite's own arguments.
    unsafe { call!(file, xShmUnmap, delete) }
}

unsafe extern "C" fn fetch(
    _: *mut sqlite3_file,
    _: sqlite3_int64,
    _: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // "Not mapped": SQLite then reads, and every read meets the disk.
    // SAFETY: SQLite gives a place for the answer.
    unsafe { *out = ptr::null_mut() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn unfetch(
    file: *mut sqlite3_file,
    offset: sqlite3_int64,
    page: *mut c_void,
) -> c_int {
    // SAFETY: an open file of the shim. Nothing is mapped, so there is nothing to release but the
    // whole mapping, of which the host has none.
    unsafe { call!(file, xUnfetch, offset, page) }
}
