//! The cgroup of all boxes of a host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The start of the names of these cgroups. The id of the host's process and a number follow.
const PREFIX: &str = "clickbox-boxes-";

/// A cgroup below the one of the host. Dropping it removes it; it is empty by then.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

/// A hierarchy of cgroups: where it is mounted, what part of it, and its controllers. Version 2 names none.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy<'a> {
    mounted: &'a str,
    root: &'a str,
    controllers: Option<&'a str>,
}

impl Cgroup {
    /// Creates a cgroup for a process and its descendants, in the first hierarchy that permits it. Hierarchies that account
    /// memory are tried first. The error is that of the last one.
    pub(super) fn create(process: i32) -> io::Result<Self> {
        let (mounts, groups) =
            (fs::read_to_string("/proc/self/mountinfo")?, fs::read_to_string("/proc/self/cgroup")?);
        let mut last = io::ErrorKind::NotFound.into();
        for folder in folders(&mounts, &groups) {
            match Self::create_in(&folder, process) {
                Ok(cgroup) => return Ok(cgroup),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn create_in(parent: &Path, process: i32) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        remove_abandoned(parent);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let cgroup = Self(parent.join(name));
        fs::create_dir(&cgroup.0)?;
        fs::write(cgroup.0.join("cgroup.procs"), process.to_string())?;
        Ok(cgroup)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // If it fails, the next host removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes the cgroups of hosts that were killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some((process, _)) = rest.and_then(|rest| rest.split_once('-')) else { continue };
        if !Path::new("/proc").join(process).exists() {
            // It is refused while there are processes in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folders of the host's cgroup in all hierarchies, by preference. `mounts` and `groups` are the contents of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn folders(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let mut folders: Vec<(u8, PathBuf)> = Vec::new();
    for hierarchy in mounts.lines().filter_map(hierarchy) {
        let own = groups.lines().find_map(|line| {
            let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
            let has = |name| hierarchy.controllers.is_some_and(|all| all.split(',').any(|one| one == name));
            let found = match hierarchy.controllers {
                None => controllers.is_empty(),
                Some(_) => controllers.split(',').all(has),
            };
            found.then_some(path)
        });
        // A hierarchy may be mounted from a cgroup on.
        let Some(inside) = own.and_then(|path| path.strip_prefix(hierarchy.root.trim_end_matches('/')))
        else {
            continue;
        };
        let folder = Path::new(hierarchy.mounted).join(inside.trim_start_matches('/'));
        let rank = match hierarchy.controllers {
            None => {
                let controllers = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
                if controllers.split_ascii_whitespace().any(|name| name == "memory") { 0 } else { 3 }
            }
            Some(options) if options.split(',').any(|name| name == "memory") => 1,
            Some(options) if options.split(',').any(|name| name == "pids") => 2,
            Some(_) => continue,
        };
        folders.push((rank, folder));
    }
    folders.sort();
    folders.into_iter().map(|(_, folder)| folder).collect()
}

/// The hierarchy that a line of `mountinfo` describes, if it is one.
fn hierarchy(line: &str) -> Option<Hierarchy<'_>> {
    let (mount, system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, mounted) = (fields.next()?, fields.next()?);
    let mut system = system.split(' ');
    match system.next()? {
        "cgroup2" => Some(Hierarchy { mounted, root, controllers: None }),
        "cgroup" => Some(Hierarchy { mounted, root, controllers: Some(system.nth(1)?) }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_preference() {
        let mounts = "25 1 0:22 / /proc rw - proc proc rw\n\
             31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
             32 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
             33 30 0:29 /docker/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             34 30 0:30 / /sys/fs/cgroup/none rw - cgroup2 cgroup rw\n";
        let groups = "9:cpu,cpuacct:/a\n8:pids:/\n4:memory:/docker/7/sub\n0::/own/cgroup\n";
        let found = folders(mounts, groups);
        let expected = ["/sys/fs/cgroup/memory/sub", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/none/own/cgroup"];
        assert_eq!(found, expected.map(PathBuf::from));
        assert!(folders("", groups).is_empty() && folders(mounts, "").is_empty());
        // A cgroup outside of what is mounted has no folder.
        assert_eq!(folders(mounts, "4:memory:/other\n"), Vec::<PathBuf>::new());
    }
}
