//! Features of the host that some tests need: other users, mounts, bubblewrap.
//!
//! Invariant: what a host does not allow is never passed over in silence. Where nothing may be
//! skipped (`CI=true`, `HIVE_TEST_STRICT=1`) it is a failure; elsewhere it is said.

use std::io::Write as _;

use rustix::process::{Gid, Uid};
use rustix::thread;

/// Whether the part of a test that needs `what` can be run.
pub fn allows(what: &str, possible: bool) -> bool {
    if possible {
        return true;
    }
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let strict = is("CI", "true") || is("HIVE_TEST_STRICT", "1");
    assert!(!strict, "this host does not allow {what}, and nothing may be skipped here");
    // Past the test's own capture, which is thrown away when it passes.
    drop(writeln!(std::io::stderr().lock(), "NOT TESTED: this host does not allow {what}"));
    false
}

/// Whether tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `work` on a thread that is another user with no rights and no groups but its own: what it
/// connects, that user connects. Only root may.
pub fn as_user<T, F>(uid: u32, work: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let run = move || {
        // A thread's own, not the process's; they end with it.
        let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
        thread::set_thread_groups(&[]).expect("root may");
        thread::set_thread_res_gid(group, group, group).expect("root may");
        thread::set_thread_res_uid(user, user, user).expect("root may");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work())
    };
    std::thread::scope(|scope| scope.spawn(run).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
