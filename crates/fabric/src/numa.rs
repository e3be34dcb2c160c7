//! Which processors are at which memory, on hosts with non-uniform memory access (NUMA).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The processors of each node, in the order of the nodes' numbers, of those that are in `allowed`. Nodes that have none of
/// them are left out. `folder`: `/sys/devices/system/node`, or one like it.
pub(crate) fn nodes(folder: &Path, allowed: &[usize]) -> Vec<BTreeSet<usize>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u32, BTreeSet<usize>)> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            Some((number, processors(&list, allowed)))
        })
        .filter(|(_, processors)| !processors.is_empty())
        .collect();
    sorting::sort(&mut found);
    found.into_iter().map(|(_, processors)| processors).collect()
}

/// The processors in a list of the kernel, such as `0-3,8`, that are in `allowed`.
fn processors(list: &str, allowed: &[usize]) -> BTreeSet<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    let ranges: Vec<_> = ranges.collect();
    sorting::collect(allowed.iter().copied().filter(|core| ranges.iter().any(|range| range.contains(core))))
}

/// Those of these processors that are at a node, or all of them if there is none.
pub(crate) fn at<'a>(
    node: Option<&'a BTreeSet<usize>>,
    processors: &'a [usize],
) -> impl Iterator<Item = usize> + 'a {
    let node = node.filter(|node| processors.iter().any(|core| node.contains(core)));
    processors.iter().copied().filter(move |core| node.is_none_or(|node| node.contains(core)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_from_a_folder() {
        let folder = std::env::temp_dir().join(format!("clickbox-numa-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let lists = [
            ("node10", "8-9,11\n"),
            ("node2", "0-3,6\n"),
            ("node3", "\n"),
            ("node4", "x-y,7"),
            ("node5", "12"),
        ];
        for (name, list) in lists {
            fs::create_dir(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("cpulist"), list).unwrap();
        }
        fs::create_dir(folder.join("node1")).unwrap();
        fs::write(folder.join("possible"), "0-10").unwrap();
        let found = nodes(&folder, &[1, 2, 3, 5, 6, 7, 8, 11]);
        let expected = [vec![1, 2, 3, 6], vec![7], vec![8, 11]];
        assert_eq!(found, expected.map(BTreeSet::from_iter));
        assert!(nodes(&folder.join("nothing"), &[0]).is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_node_without_free_processors_gives_all() {
        let node = BTreeSet::from([1, 2]);
        let at = |node, processors: &[usize]| at(node, processors).collect::<Vec<_>>();
        assert_eq!(at(Some(&node), &[0, 1, 2, 3]), [1, 2]);
        assert_eq!(at(Some(&node), &[0, 3]), [0, 3]);
        assert_eq!(at(None, &[0, 3]), [0, 3]);
    }
}
