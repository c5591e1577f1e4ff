//! Access control lists of socket files: the kernel itself lets only named users connect.
//!
//! A file has one owner and one group, and only root may give it another owner. Its list names any
//! users, and the owner may set it. Invariant: a list replaces mode and list in one step, so a user
//! who keeps the right never lacks it.

use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, lsetxattr};

/// The attribute of a file that has its list.
const ATTRIBUTE: &str = "system.posix_acl_access";
/// The version of the list's form (`linux/posix_acl_xattr.h`).
const VERSION: u32 = 2;
/// The id of an entry that is for no single user or group.
const NO_ID: u32 = u32::MAX;

const READ_WRITE: u16 = 6;
const NOTHING: u16 = 0;

/// The receiver of an entry, with its number in `linux/posix_acl.h`. They stand in this order.
#[derive(Clone, Copy)]
enum Tag {
    Owner = 0x01,
    User = 0x02,
    Group = 0x04,
    /// What users and groups that are named have at most.
    Mask = 0x10,
    Other = 0x20,
}

/// Lets the owner and these users connect to a socket, and otherwise only root.
pub(super) fn let_in(socket: &Path, uids: &[u32]) -> io::Result<()> {
    Ok(lsetxattr(socket, ATTRIBUTE, &list(uids), XattrFlags::empty())?)
}

fn list(uids: &[u32]) -> Vec<u8> {
    let mut uids = uids.to_vec();
    uids.sort_unstable();
    uids.dedup();
    let mut list = VERSION.to_le_bytes().to_vec();
    let mut add = |tag: Tag, rights: u16, id: u32| {
        list.extend((tag as u16).to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    };
    add(Tag::Owner, READ_WRITE, NO_ID);
    for uid in uids {
        add(Tag::User, READ_WRITE, uid);
    }
    add(Tag::Group, NOTHING, NO_ID);
    add(Tag::Mask, READ_WRITE, NO_ID);
    add(Tag::Other, NOTHING, NO_ID);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_in_order_and_once() {
        let ids = |uids: &[u32]| -> Vec<u32> {
            let list = list(uids);
            let entries = list[4..].chunks_exact(8);
            entries.map(|entry| u32::from_le_bytes(entry[4..].try_into().expect("4"))).collect()
        };
        assert_eq!(ids(&[9, 3, 9]), [NO_ID, 3, 9, NO_ID, NO_ID, NO_ID]);
    }

    #[test]
    fn the_kernel_takes_a_list_and_shows_its_mask_as_the_mode_of_the_group() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let_in(&path, &[48_211, 0]).expect("its file system has lists");
        let mode = path.symlink_metadata().expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        let_in(&dir.path().join("none"), &[0]).expect_err("there is no such file");
    }
}
