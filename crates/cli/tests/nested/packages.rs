//! Packages from Debian's archive: the emulator, a kernel with its modules, and a shell. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the unpacked packages.
pub(crate) struct Packages {
    root: PathBuf,
}

/// Runs a command and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; this needs Debian"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

impl Packages {
    /// Downloads and unpacks the packages, unless done before.
    pub(crate) fn fetch(folder: &Path) -> Packages {
        let (archives, done) = (folder.join("archives"), folder.join("root/done"));
        let packages = Packages { root: folder.join("root") };
        if done.exists() {
            return packages;
        }
        fs::create_dir_all(archives.join("partial")).expect("a folder");
        // The emulator, with the libraries that this machine lacks.
        let mut cache = std::ffi::OsString::from("Dir::Cache::archives=");
        cache.push(&archives);
        run(Command::new("apt-get")
            .args(["install", "--yes", "--download-only", "--no-install-recommends", "--reinstall"])
            .args(["-o", "Debug::NoLocking=true", "-o"])
            .arg(cache)
            // Named, because one that is installed would not be downloaded as a dependency.
            .args(["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]));
        let depends = run(Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"]));
        let kernel = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let kernel = kernel.expect("a kernel's package");
        run(Command::new("apt-get").args(["download", kernel, "busybox-static"]).current_dir(&archives));
        for archive in fs::read_dir(&archives).expect("the archives").flatten().map(|entry| entry.path()) {
            if archive.extension().is_some_and(|extension| extension == "deb") {
                run(Command::new("dpkg").arg("-x").args([&archive, &packages.root]));
            }
        }
        fs::write(done, "").expect("a file");
        packages
    }

    /// The emulator's command, with paths to its libraries and firmware.
    pub(crate) fn emulator(&self) -> Command {
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|path| self.root.join(path));
        let mut command = Command::new(self.root.join("usr/bin/qemu-system-x86_64"));
        command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).expect("paths"));
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.root.join(data));
        }
        command
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> PathBuf {
        let entries = fs::read_dir(self.root.join("boot")).expect("the kernel's folder").flatten();
        let mut files = entries.map(|entry| entry.path());
        files.find(|path| path.to_string_lossy().contains("/vmlinuz-")).expect("a kernel")
    }

    /// The modules for KVM, by name.
    pub(crate) fn modules(&self) -> Vec<(&'static str, Vec<u8>)> {
        let releases = fs::read_dir(self.root.join("lib/modules")).expect("modules").flatten();
        let release = releases.map(|entry| entry.path()).next().expect("a kernel's modules").join("kernel");
        let places =
            [("irqbypass.ko", "virt/lib"), ("kvm.ko", "arch/x86/kvm"), ("kvm-amd.ko", "arch/x86/kvm")];
        let read = |folder: &str, name| fs::read(release.join(folder).join(name)).expect("a module");
        places.into_iter().map(|(name, folder)| (name, read(folder, name))).collect()
    }

    /// A shell with basic commands, in one file.
    pub(crate) fn busybox(&self) -> Vec<u8> {
        let places = ["bin/busybox", "usr/bin/busybox"].map(|path| self.root.join(path));
        let place = places.into_iter().find(|path| path.exists()).expect("busybox");
        fs::read(place).expect("busybox")
    }
}
