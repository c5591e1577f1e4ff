//! Probes of a fenced program, in a thread that applies the fence to itself.
//!
//! Invariant: the fence ends with the thread; the harness stays outside, because it makes
//! sandboxes.

use hive_core::isolation::Finding;
use rustix::io::Errno;

use super::raw::{ATTEMPTS, Attempt, CLONE3};
use super::{one_line, partly, sockets};
use crate::fence::domain::Domain;
use crate::fence::{self, FenceError};

/// Probes from inside the fence.
pub(super) fn probe(user_namespaces: bool, with_sockets: bool) -> Vec<Finding> {
    let probe = move || inside(user_namespaces, with_sockets);
    let probed = std::thread::Builder::new()
        .name("fenced".to_owned())
        .spawn(probe)
        .map(std::thread::JoinHandle::join);
    match probed {
        Ok(Ok(Ok(findings))) => findings,
        Ok(Ok(Err(error))) => {
            vec![super::broken(format!("the fence fails: {}", one_line(&error.to_string())))]
        }
        Ok(Err(_)) => vec![super::broken("the probe from inside the fence failed".to_owned())],
        Err(error) => vec![super::broken(format!("no thread can be started: {error}"))],
    }
}

fn inside(user_namespaces: bool, with_sockets: bool) -> Result<Vec<Finding>, FenceError> {
    let domain = fence::apply(user_namespaces)?;
    let mut findings: Vec<Finding> = domain_finding(domain, user_namespaces).into_iter().collect();
    let attempts = ATTEMPTS.iter().filter(|attempt| !user_namespaces || attempt.is_always_refused);
    findings.extend(
        attempts.filter(|attempt| !is_refused(**attempt)).map(|attempt| {
            partly(format!("the filter of system calls lets `{}` pass", attempt.name))
        }),
    );
    if with_sockets {
        match sockets::abstract_ones() {
            Ok(found) => findings.extend(found),
            Err(error) => {
                findings.push(partly(format!("the abstract sockets cannot be listed: {error}")));
            }
        }
    }
    Ok(findings)
}

fn domain_finding(domain: Domain, user_namespaces: bool) -> Option<Finding> {
    let sentence = match domain {
        Domain::Scoped => return None,
        Domain::Untraced => {
            "Landlock of this kernel (before Linux 6.12) keeps neither signals nor abstract sockets inside"
        }
        Domain::None if user_namespaces => {
            "claude and its shell tasks can read each other's memory and environment: with user_namespaces, Landlock needs Linux 6.12"
        }
        Domain::None => {
            "claude and its shell tasks can read each other's memory and environment: the kernel has no Landlock (Linux 5.19)"
        }
    };
    Some(partly(sentence.to_owned()))
}

fn is_refused(attempt: Attempt) -> bool {
    let refusal = if attempt.name == CLONE3 { Errno::NOSYS } else { Errno::PERM };
    attempt.run().is_some_and(|error| error.raw_os_error() == Some(refusal.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_refuses_every_attempt_and_ends_with_its_thread() {
        let lets_pass = |found: Vec<Finding>| {
            found.into_iter().map(|f| f.sentence).filter(|s| s.contains("lets")).collect::<Vec<_>>()
        };
        for user_namespaces in [false, true] {
            assert_eq!(lets_pass(probe(user_namespaces, false)), [""; 0]);
        }
        let namespaces = ATTEMPTS.iter().filter(|a| [CLONE3, "setns"].contains(&a.name));
        assert_eq!(namespaces.clone().count(), 2);
        assert!(!namespaces.copied().any(is_refused), "this thread is outside");
    }
}
