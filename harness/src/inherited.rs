//! Variables that programs inherit from the harness, in claude's environment and in that of tasks.

/// Variables that every program needs, or that set the user's language.
const COMMON: [&str; 11] = [
    "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "NO_PROXY",
    "no_proxy",
];
/// Variables with the URL of a proxy, in lower case; programs also read them in upper case.
const PROXIES: [&str; 3] = ["http_proxy", "https_proxy", "all_proxy"];
/// Files with certificates and locales.
const FILES: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "LOCALE_ARCHIVE"];
/// Prefixes of variables of the locale and of certificates.
const PREFIXES: [&str; 2] = ["LC_", "SSL_CERT_"];

/// Returns whether claude and shell tasks inherit the variable.
pub(crate) fn is_common(name: &str) -> bool {
    COMMON.contains(&name)
        || is_proxy(name)
        || FILES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether the variable is the URL of a proxy, which may contain a password.
pub(crate) fn is_proxy(name: &str) -> bool {
    PROXIES.iter().any(|proxy| name == *proxy || name == proxy.to_ascii_uppercase())
}
