//! Control groups: each fabric gets one of its own below the launcher's, where the host permits it.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the hierarchies are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// Controllers of version 1 whose groups limit and count, but do not change how processors are shared.
const CONTROLLERS: &[&str] = &["memory", "pids"];

/// The controller of version 1 that shares processors, used where fabrics have weights.
const CPU: &str = "cpu";

/// The start of the names of fabrics' groups. The number of the process follows.
const PREFIX: &str = "fabric-";

/// How long the removal of a group is tried, and the pause between two attempts.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

/// How long the groups of a fabric stay after its end. The fabric that follows is started first.
const REMOVE_DELAY: Duration = Duration::from_millis(50);

/// How deep a fabric may nest groups of its own.
const MAX_DEPTH: u32 = 4;

/// The name of a fabric's groups.
pub(crate) fn name_of(pid: u32) -> String {
    format!("{PREFIX}{pid}")
}

/// Puts a process into new groups with this name; with a weight, also into one that shares processors. Returns the
/// groups, and the first error if one can't be made. Groups that were left beside them are removed.
pub(crate) fn enter(name: &str, pid: u32, weight: Option<u16>) -> (Vec<PathBuf>, Option<io::Error>) {
    let (mut groups, mut first) = (Vec::new(), None);
    let parents = match fs::read_to_string("/proc/self/cgroup") {
        Ok(list) => own(&list, weight.is_some(), |path| path.exists()),
        Err(error) => return (groups, Some(error)),
    };
    if parents.is_empty() {
        first = Some(io::Error::from(rustix::io::Errno::NOENT));
    }
    for parent in parents {
        remove_abandoned(&parent);
        let group = parent.join(name);
        let enter = || create(&group).and_then(|()| fs::write(group.join("cgroup.procs"), pid.to_string()));
        let entered = match enter() {
            // Another launcher took it for one that was left.
            Err(error) if error.kind() == io::ErrorKind::NotFound => enter(),
            result => result,
        };
        let weighed = weight.map_or(Ok(()), |weight| weigh(&group, weight));
        let entered = entered.and(weighed);
        match entered {
            Ok(()) => groups.push(group),
            Err(error) => {
                remove_below(&group, 0);
                first.get_or_insert(error);
            }
        }
    }
    (groups, first)
}

/// Creates a group. One of this name may be there: it belonged to a fabric whose process had the same number, and whose launcher was
/// killed before it could remove the group.
fn create(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_below(group, MAX_DEPTH);
            fs::create_dir(group)
        }
        result => result,
    }
}

/// Removes the groups of fabrics that have ended and whose launcher was killed before it could do so. The kernel removes no group that
/// has processes or groups. If there is a process with the number, which may be another one, the groups below may be new ones of a fabric.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let Some(pid) = pid.filter(|pid| name == *name_of(*pid)) else { continue };
        let is_ended = !Path::new("/proc").join(pid.to_string()).exists();
        remove_below(&entry.path(), if is_ended { MAX_DEPTH } else { 0 });
    }
}

/// The groups with this name in which a process is.
pub(crate) fn of(name: &str, pid: u32) -> Vec<PathBuf> {
    let list = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut groups = own(&list, true, |path| path.exists());
    // It may have moved into a group below.
    groups.iter_mut().for_each(|group| while !group.ends_with(name) && group.pop() {});
    groups.retain(|group| group.ends_with(name));
    groups
}

/// Sets the weight of a group, if it shares processors.
fn weigh(group: &Path, weight: u16) -> io::Result<()> {
    // Version 2 counts from 100, version 1 from 1024.
    let files = [("cpu.weight", u32::from(weight)), ("cpu.shares", u32::from(weight) * 1024 / 100)];
    for (file, value) in files {
        let path = group.join(file);
        if path.exists() {
            fs::write(path, value.max(2).to_string())?;
        }
    }
    Ok(())
}

/// Lets a user make groups below this one.
pub(crate) fn delegate(group: &Path, user: u32) -> io::Result<()> {
    let own = |path: &Path| chown(path, Some(user), Some(user));
    own(group)?;
    own(&group.join("cgroup.procs"))?;
    match own(&group.join("cgroup.subtree_control")) {
        // Version 1 has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The groups of fabrics that have ended. The kernel refuses to remove a group for a moment after its last process was
/// reaped, or as long as processes are left in it.
#[derive(Debug, Default)]
pub(crate) struct EndedGroups {
    /// With the time until which their removal is tried.
    groups: Vec<(PathBuf, Instant)>,
    /// When it is tried next.
    due: Option<Instant>,
}

impl EndedGroups {
    /// Adds the groups of a fabric that ended now.
    pub(crate) fn add(&mut self, groups: Vec<PathBuf>, now: Instant) {
        let deadline = now + REMOVE_TIMEOUT;
        self.groups.extend(groups.into_iter().map(|group| (group, deadline)));
        self.due = (!self.groups.is_empty()).then_some(now + REMOVE_DELAY);
    }

    /// Removes what can be removed, if it is time.
    pub(crate) fn remove_due(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.remove(now);
        }
    }

    /// Removes what can be removed. Returns whether any are left to try again.
    pub(crate) fn remove(&mut self, now: Instant) -> bool {
        self.groups.retain(|(group, deadline)| {
            remove_below(group, MAX_DEPTH);
            group.exists() && now < *deadline
        });
        self.due = (!self.groups.is_empty()).then_some(now + REMOVE_PAUSE);
        self.due.is_some()
    }

    /// When [`remove_due`](Self::remove_due) has to be called.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}

fn remove_below(group: &Path, depth: u32) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path(), depth - 1);
        }
    }
    // What can't be removed now is tried again.
    let _ = fs::remove_dir(group);
}

/// A process's groups in the hierarchies that matter, from `/proc/PID/cgroup`: lines of a number, controllers
/// and a path. Version 2 has the number 0 and no controllers.
fn own(list: &str, has_weight: bool, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let group = |line: &str| {
        let mut words = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (words.next(), words.next(), words.next()) else {
            return None;
        };
        let path = path.trim_start_matches('/');
        let mounts = match controllers {
            // Mounted alone, or beside the hierarchies of version 1.
            "" if number == "0" => vec![PathBuf::from(ROOT), Path::new(ROOT).join("unified")],
            _ if controllers
                .split(',')
                .any(|name| CONTROLLERS.contains(&name) || has_weight && name == CPU) =>
            {
                vec![Path::new(ROOT).join(controllers)]
            }
            _ => vec![],
        };
        // Every group has this file, and the folder of version 1's mounts does not.
        mounts.into_iter().map(|mount| mount.join(path)).find(|group| exists(&group.join("cgroup.procs")))
    };
    list.lines().filter_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_found_in_all_layouts() {
        let check = |list: &str, existing: &[&str], expected: &[&str]| {
            let exists =
                |path: &Path| existing.iter().any(|group| Path::new(group).join("cgroup.procs") == path);
            assert_eq!(
                own(list, false, exists),
                expected.iter().map(PathBuf::from).collect::<Vec<_>>(),
                "{list}"
            );
        };
        check(
            "0::/a.slice/b.service\n",
            &["/sys/fs/cgroup/a.slice/b.service"],
            &["/sys/fs/cgroup/a.slice/b.service"],
        );
        let both = "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n3:cpu,cpuacct:/\n0::/\n";
        let mounts = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/unified"];
        check(both, &mounts, &mounts);
        check("0::/../outside\nnonsense\n::\n", &[], &[]);
    }

    /// Only those are removed whose names are those of fabrics that have ended, or that nothing is in.
    #[test]
    fn groups_that_were_left_are_removed() {
        let parent = std::env::temp_dir().join(format!("clickbox-groups-{}", std::process::id()));
        // More than the kernel gives.
        let ended = name_of(1 << 23);
        let others = [
            name_of(std::process::id()),
            format!("{PREFIX}0{}", 1 << 23),
            format!("{ended}-x"),
            format!("x{ended}"),
            PREFIX.into(),
            (1 << 23).to_string(),
        ];
        for name in others.iter().chain([&ended]) {
            fs::create_dir_all(parent.join(name).join("boxes")).unwrap();
        }
        let used = parent.join(name_of((1 << 23) + 1));
        fs::create_dir(&used).unwrap();
        fs::write(used.join("cgroup.procs"), "7").unwrap();
        remove_abandoned(&parent);
        assert!(!parent.join(ended).exists() && used.exists());
        assert!(others.iter().all(|name| parent.join(name).join("boxes").exists()));
        fs::remove_dir_all(&parent).unwrap();
    }

    /// Numbers of processes are used again.
    #[test]
    fn a_group_that_was_left_is_replaced() {
        let group = std::env::temp_dir().join(format!("clickbox-group-{}", std::process::id()));
        fs::create_dir_all(group.join("boxes/below")).unwrap();
        create(&group).unwrap();
        assert_eq!(fs::read_dir(&group).unwrap().count(), 0);
        // One that is in use is left alone.
        fs::write(group.join("cgroup.procs"), "7").unwrap();
        assert_eq!(create(&group).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_dir_all(&group).unwrap();
    }
}
