//! Remedies for a host that does not allow sandboxes.

/// A setting of the kernel that forbids user namespaces, the value that does so, and the remedy.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor restricts user namespaces (Ubuntu 24.04): `sudo apt install apparmor-profiles`, copy \
         /usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d/, then `sudo systemctl reload apparmor`",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are switched off: `sudo sysctl kernel.unprivileged_userns_clone=1`",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user namespaces are switched off: `sudo sysctl user.max_user_namespaces=15000`",
    ),
];

/// Returns the remedy, if the cause is known.
pub(super) fn find() -> Option<&'static str> {
    find_in(|path| std::fs::read_to_string(path).ok())
}

fn find_in(read: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    SETTINGS
        .iter()
        .find(|(path, value, _)| read(path).is_some_and(|found| found.trim() == *value))
        .map(|(.., remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_forbids_namespaces_names_its_remedy() {
        let ubuntu =
            |path: &str| Some(if path.contains("apparmor") { "1\n" } else { "15000\n" }.to_owned());
        assert!(find_in(ubuntu).is_some_and(|remedy| remedy.contains("bwrap-userns-restrict")));
        assert_eq!(find_in(|_| Some("1\n".to_owned()).filter(|_| false)), None);
        assert!(
            find_in(|path| path.contains("max_user").then(|| "0".to_owned()))
                .is_some_and(|remedy| remedy.contains("sysctl"))
        );
    }
}
