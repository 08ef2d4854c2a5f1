//! Memory that the control groups of this process have left: limits of containers and of services.
//!
//! A process is in a group of the file system `cgroup2` (`0::/a/b` in `/proc/self/cgroup`), or, in older systems, in one of the
//! controller `memory` (`4:memory:/a/b`). Each folder from the group's up to the root may have a limit, and the least that is
//! left counts. In a container the paths may be those of the host, which are not there: the root then is the container's group.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a group that state its limit, its use, and the name in `memory.stat` of what the system gives up on demand.
struct Files {
    limit: &'static str,
    used: &'static str,
    cache: &'static str,
}

const SECOND: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    cache: "inactive_file",
};

const FIRST: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: "total_inactive_file",
};

/// Bytes that the control groups of this process have left; none if they have no limit.
pub(super) fn left() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    left_in(&own, Path::new("/sys/fs/cgroup"))
}

/// The same by the text of `/proc/self/cgroup` and where the groups are.
fn left_in(own: &str, root: &Path) -> Option<u64> {
    own.lines().filter_map(|line| of_line(line, root)).min()
}

fn of_line(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, files) = match controllers {
        "" => (root.to_owned(), &SECOND),
        _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), &FIRST),
        _ => return None,
    };
    let group: PathBuf = root.join(path.trim_start_matches('/'));
    let folders = group.ancestors().take_while(|at| at.starts_with(&root));
    folders.filter_map(|folder| of_folder(folder, files)).min()
}

fn of_folder(folder: &Path, files: &Files) -> Option<u64> {
    let number = |file: &str| -> Option<u64> {
        // `max` stands for no limit.
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let (limit, used) = (number(files.limit)?, number(files.used)?);
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = stat.lines().find_map(|line| {
        let value = line.strip_prefix(files.cache)?.strip_prefix(' ')?;
        value.trim().parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that stands for `/sys/fs/cgroup`, with files and their texts.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_of_a_group_and_those_around_it() {
        let files = [
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "800\n"),
            ("a/b/c/memory.max", "5000\n"),
            ("a/b/c/memory.current", "800\n"),
        ];
        let root = root(&files);
        let left = |own| left_in(own, root.path());
        assert_eq!(left("0::/a/b/c\n"), Some(100));
        assert_eq!(left("0::/a/b\n"), Some(100));
        assert_eq!(left("0::/\n"), None);
        assert_eq!(left(""), None);
        // A path of the host, of which the container has only the root.
        assert_eq!(left("0::/elsewhere/x\n"), None);
    }

    #[test]
    fn a_container_is_its_root() {
        let root = root(&[("memory.max", "1000"), ("memory.current", "1200")]);
        assert_eq!(left_in("0::/\n", root.path()), Some(0));
        assert_eq!(left_in("0::/docker/1234\n", root.path()), Some(0));
    }

    #[test]
    fn what_is_cached_of_files_is_left() {
        let files = [
            ("memory.max", "1000"),
            ("memory.current", "900"),
            ("memory.stat", "anon 500\nfile 400\ninactive_file 300\n"),
        ];
        assert_eq!(left_in("0::/\n", root(&files).path()), Some(400));
    }

    #[test]
    fn groups_of_older_systems() {
        let files = [
            ("memory/a/memory.limit_in_bytes", "700"),
            ("memory/a/memory.usage_in_bytes", "600"),
            (
                "memory/a/memory.stat",
                "inactive_file 7\ntotal_inactive_file 50\n",
            ),
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/memory.usage_in_bytes", "600"),
        ];
        let root = root(&files);
        let own = "5:cpu,cpuacct:/a\n4:memory:/a\n0::/a\n";
        assert_eq!(left_in(own, root.path()), Some(150));
    }
}
