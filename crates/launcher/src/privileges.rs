//! What the launcher does to itself, so that the fabrics that it starts inherit it.
//!
//! That way nothing has to happen between the fork and the start of a fabric's program. A program that root starts gets
//! all capabilities of the bounding set; with an empty one it gets none. The launcher itself keeps what it has, because
//! it starts no other program in its own process.

use protocol::launcher::{Shortfall, Step};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::fs;
use std::io;

/// The score by which the kernel chooses a process to end when memory is short, from -1000 to 1000. Boxes have a
/// positive one.
const OOM_SCORE: i32 = -500;
const OOM_FILE: &str = "/proc/self/oom_score_adj";

/// The limit that permits all priorities: 20 minus the niceness.
const NICE_LIMIT: u64 = 40;

/// Prepares this process. `changes_user`: fabrics become another user. Returns the measures that are not permitted.
pub(crate) fn prepare(changes_user: bool) -> Vec<Shortfall> {
    // A fabric loses these when it has become another user.
    let kept = match changes_user {
        true => CapabilitySet::SETUID | CapabilitySet::SETGID,
        false => CapabilitySet::empty(),
    };
    [
        // Raising limits and lowering the score needs a capability, which this process keeps.
        (Step::RaiseNiceLimit, raise_limit(Resource::Nice, NICE_LIMIT)),
        (Step::RaiseFileLimit, raise_limit(Resource::Nofile, 0)),
        (Step::LowerOomScore, lower_oom_score()),
        (Step::DropCapabilities, drop_inherited_capabilities(kept)),
    ]
    .into_iter()
    .filter_map(|(step, result)| result.err().map(|error| Shortfall { step, errno: number(&error) }))
    .collect()
}

/// Whether processes of this launcher can become this user and group. In a user namespace, or with few capabilities, root
/// cannot.
pub(crate) fn can_become(user: u32) -> bool {
    let is_mapped = |map: &str| {
        let text = fs::read_to_string(map).unwrap_or_default();
        text.lines().any(|line| {
            let mut numbers = line.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
            let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
            let user = u64::from(user);
            first
                .zip(count)
                .is_some_and(|(first, count)| (first..first.saturating_add(count)).contains(&user))
        })
    };
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN | CapabilitySet::KILL;
    is_mapped("/proc/self/uid_map")
        && is_mapped("/proc/self/gid_map")
        && capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// The number of a system's error.
pub(crate) fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

/// Raises a limit to the hard limit, and both to at least `least`.
fn raise_limit(resource: Resource, least: u64) -> io::Result<()> {
    let hard = getrlimit(resource).maximum.map(|hard| hard.max(least));
    let result = setrlimit(resource, Rlimit { current: hard, maximum: hard });
    if result.is_err() {
        // The hard limit can't be raised; reach it at least.
        let hard = getrlimit(resource).maximum;
        setrlimit(resource, Rlimit { current: hard, maximum: hard })?;
    }
    Ok(result?)
}

fn lower_oom_score() -> io::Result<()> {
    let score = fs::read_to_string(OOM_FILE)?;
    match score.trim().parse::<i32>() {
        Ok(score) if score <= OOM_SCORE => Ok(()),
        _ => fs::write(OOM_FILE, OOM_SCORE.to_string()),
    }
}

/// Empties the sets from which a program that this process starts would get capabilities, and forbids programs to
/// bring their own.
fn drop_inherited_capabilities(kept: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?;
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if kept.contains(capability) => {}
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                // Without the privilege to do this, only root's programs get capabilities from the bounding set.
                Err(error) if geteuid().is_root() => return Err(error.into()),
                _ => {}
            },
            Ok(false) => {}
            // The kernel knows no more capabilities.
            Err(_) => break,
        }
    }
    Ok(())
}
