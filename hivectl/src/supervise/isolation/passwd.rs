//! /etc/passwd in a sandbox: that of the host, with the agent's home.
//!
//! OpenSSH and others take the home from there and ignore `$HOME`. Invariant: the agent's user has
//! exactly one line.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::MemfdFlags;

pub(super) fn file(home: &Path) -> io::Result<OwnedFd> {
    let host = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut file = File::from(rustix::fs::memfd_create("passwd", MemfdFlags::CLOEXEC)?);
    file.write_all(text(&host, uid, gid, &home.to_string_lossy()).as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

fn text(host: &str, uid: u32, gid: u32, home: &str) -> String {
    let is_own =
        |line: &&str| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(uid);
    let own = host.lines().find(is_own);
    let mut fields: Vec<String> = match own {
        Some(line) => line.split(':').map(str::to_owned).collect(),
        // A user of a directory service.
        None => ["agent", "x", &uid.to_string(), &gid.to_string(), "", "", "/bin/sh"]
            .map(str::to_owned)
            .to_vec(),
    };
    fields.resize(7, String::new());
    home.clone_into(&mut fields[5]);
    let mut lines = vec![fields.join(":")];
    lines.extend(host.lines().filter(|line| !is_own(line)).map(str::to_owned));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_has_the_agents_home() {
        let host = "root:x:0:0:root:/root:/bin/bash\nme:x:1000:100:Me:/home/me:/bin/zsh\nalias:x:1000:100::/x:/bin/sh\n";
        assert_eq!(
            text(host, 1000, 100, "/h"),
            "me:x:1000:100:Me:/h:/bin/zsh\nroot:x:0:0:root:/root:/bin/bash\n"
        );
        assert_eq!(text("", 7, 8, "/h"), "agent:x:7:8::/h:/bin/sh\n");
    }
}
