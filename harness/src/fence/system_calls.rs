//! The filter of system calls: no namespaces, no keyrings, no `io_uring`, no `userfaultfd`, no
//! `bpf`, no typing into terminals.
//!
//! `ptrace` stays, for debuggers; the Landlock domain limits it. Invariant: a refused call is
//! refused under each number that the kernel accepts. Programs of another architecture are killed
//! at their first system call, and the numbers of x32 are on the same list.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::FenceError;

/// System calls that are refused with any arguments.
const REFUSED: [c_long; 8] = [
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
];
/// System calls that enter or leave namespaces.
const OF_NAMESPACES: [c_long; 2] = [libc::SYS_unshare, libc::SYS_setns];
/// Flags of `clone` that make a namespace. `CLONE_NEWTIME` is not included: in `clone` its bit is
/// part of a signal's number.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Requests of `ioctl` that type into a terminal: `TIOCSTI` and `TIOCLINUX`. The kernel reads only
/// their low 32 bits. They are numbers, because these constants have another type with musl.
const TYPING: [u64; 2] = [0x5412, 0x541c];

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// The bit that marks the numbers of x32, which share the architecture of `x86_64`.
#[cfg(target_arch = "x86_64")]
const X32_BIT: c_long = 0x4000_0000;
/// `ioctl` has another number in x32.
#[cfg(target_arch = "x86_64")]
const X32_IOCTL: c_long = X32_BIT | 514;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filter to the calling thread and all that it starts.
pub fn apply(user_namespaces: bool) -> Result<(), FenceError> {
    for program in programs(user_namespaces)? {
        apply_filter(&program)?;
    }
    Ok(())
}

/// Returns the filters; each refuses with a different error.
fn programs(user_namespaces: bool) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let mut refused = Rules::new();
    for number in REFUSED {
        add_rule(&mut refused, number, &[]);
    }
    let typing =
        matching(1, SeccompCmpArgLen::Dword, TYPING.map(|request| (SeccompCmpOp::Eq, request)))?;
    add_rule(&mut refused, libc::SYS_ioctl, &typing);
    #[cfg(target_arch = "x86_64")]
    refused.insert(X32_IOCTL, typing);
    if user_namespaces {
        return Ok(vec![program(refused, libc::EPERM)?]);
    }
    for number in OF_NAMESPACES {
        add_rule(&mut refused, number, &[]);
    }
    let flags = NEW_NAMESPACES.map(|flag| u64::from(flag.cast_unsigned()));
    let flags = matching(
        0,
        SeccompCmpArgLen::Qword,
        flags.map(|flag| (SeccompCmpOp::MaskedEq(flag), flag)),
    )?;
    add_rule(&mut refused, libc::SYS_clone, &flags);
    // Its flags are in memory, which a filter cannot read. Without it programs use `clone`.
    let mut absent = Rules::new();
    add_rule(&mut absent, libc::SYS_clone3, &[]);
    Ok(vec![program(refused, libc::EPERM)?, program(absent, libc::ENOSYS)?])
}

/// Returns a rule for each pair: one match is enough.
fn matching<const N: usize>(
    argument: u8,
    length: SeccompCmpArgLen,
    pairs: [(SeccompCmpOp, u64); N],
) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let rule = |(operator, value)| {
        let condition = SeccompCondition::new(argument, length.clone(), operator, value)?;
        Ok(SeccompRule::new(vec![condition])?)
    };
    pairs.into_iter().map(rule).collect()
}

fn add_rule(rules: &mut Rules, number: c_long, when: &[SeccompRule]) {
    rules.insert(number, when.to_vec());
    #[cfg(target_arch = "x86_64")]
    rules.insert(number | X32_BIT, when.to_vec());
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::Error> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        ARCH,
    )?;
    Ok(BpfProgram::try_from(filter)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_are_small_and_user_namespaces_take_one_away() {
        let sizes = |user_namespaces| {
            programs(user_namespaces).expect("built").iter().map(Vec::len).collect::<Vec<_>>()
        };
        let (all, lifted) = (sizes(false), sizes(true));
        assert_eq!((all.len(), lifted.len()), (2, 1));
        assert!(lifted[0] < all[0] && all.iter().sum::<usize>() < 512, "{all:?} {lifted:?}");
    }
}
