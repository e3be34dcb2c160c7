//! Devices that a process with privileges opened, and that one without them uses (needs root).

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use switch::device::{PacketSocket, PacketSocketSettings, Tunnel, TunnelSettings};
use switch::driver::{AfPacket, Tap};
use switch::{Batch, Driver};
use test_support::{Capability, require, skip};

#[path = "adopted/xdp.rs"]
mod xdp;

/// How long a test waits for expected frames.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Moves this thread into a new network namespace. Returns false if the test is skipped.
fn own_network() -> bool {
    if !require(Capability::Root) {
        return false;
    }
    // SAFETY: it changes this thread's namespaces only.
    let own = unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 };
    if !own {
        skip(Capability::Root, "a network namespace can't be made");
    }
    own
}

/// Runs `ip` with these arguments. Returns whether it succeeded.
fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).output().is_ok_and(|output| output.status.success())
}

/// Gives up all capabilities of this thread.
fn drop_capabilities() {
    // Version 3 of the header, for this thread, and three empty sets in two halves.
    let (header, sets) = ([0x2008_0522u32, 0], [0u32; 6]);
    // SAFETY: the kernel reads both arrays.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) };
    assert_eq!(result, 0);
}

fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![number; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// Sends a frame at one end until it arrives at the other: a device takes a moment to come up.
fn cross(from: &mut dyn Driver, to: &mut dyn Driver, number: u8) {
    let mut out = Batch::new(1);
    assert!(out.push(&frame(number)));
    let start = Instant::now();
    loop {
        from.send(&out, &[0]).unwrap();
        let mut came = Batch::new(64);
        to.receive(&mut came).unwrap();
        if came.frames().any(|found| found == frame(number)) {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "no frame arrives");
    }
}

#[test]
fn opened_devices_need_no_privileges() {
    if !own_network() {
        return;
    }
    let tap = match Tap::open_descriptor("tap0") {
        Ok(tap) => tap,
        Err(error) => return skip(Capability::Root, format!("TAP device: {error}")),
    };
    assert!(ip("link add left type veth peer name right"));
    assert!(ip("link set left up") && ip("link set right up"));
    let sockets = ["tap0", "left", "right"].map(|name| AfPacket::open_descriptor(name).unwrap());
    let without_privileges = std::thread::spawn(move || {
        drop_capabilities();
        assert_eq!(AfPacket::open("left").unwrap_err().kind(), ErrorKind::PermissionDenied);
        let mut tap = Tap::from_descriptor(tap).unwrap();
        let [mut on_tap, mut left, mut right] =
            sockets.map(|socket| AfPacket::from_descriptor(socket).unwrap());
        cross(&mut tap, &mut on_tap, 1);
        cross(&mut on_tap, &mut tap, 2);
        cross(&mut left, &mut right, 3);
        cross(&mut right, &mut left, 4);
    });
    without_privileges.join().unwrap();
}

#[test]
fn a_tap_lives_as_long_as_a_duplicate_of_its_descriptor() {
    if !own_network() {
        return;
    }
    let kept = match Tap::open_descriptor("tap0") {
        Ok(tap) => tap,
        Err(error) => return skip(Capability::Root, format!("TAP device: {error}")),
    };
    let mut far = AfPacket::open("tap0").unwrap();
    for number in 0..3 {
        let mut tap = Tap::from_descriptor(kept.try_clone().unwrap()).unwrap();
        cross(&mut tap, &mut far, number);
    }
    assert_eq!(Tap::open("tap0").unwrap_err().raw_os_error(), Some(libc::EBUSY));
    drop(kept);
    // A process that another test starts has all descriptors until it executes its program.
    let begin = Instant::now();
    while ip("link show tap0") {
        assert!(begin.elapsed() < Duration::from_secs(10), "the tap is still there");
    }
}

#[test]
fn other_descriptors_are_refused() {
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let socket = || OwnedFd::from(UnixDatagram::unbound().unwrap());
    for descriptor in [null(), socket()] {
        assert!(Tap::from_descriptor(descriptor).is_err());
    }
    for descriptor in [null(), socket()] {
        assert!(AfPacket::from_descriptor(descriptor).is_err());
    }
    if !own_network() {
        return;
    }
    // Sockets of other kinds, and one that is bound to nothing.
    let kinds = [(libc::SOCK_DGRAM, libc::EINVAL), (libc::SOCK_RAW, libc::ENODEV)];
    for (kind, expected) in kinds {
        // SAFETY: the new descriptor is owned by this value alone.
        let socket = unsafe {
            let number = libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0);
            assert!(number >= 0);
            OwnedFd::from_raw_fd(number)
        };
        let error = AfPacket::from_descriptor(socket).unwrap_err();
        let expected = std::io::Error::from_raw_os_error(expected).kind();
        assert_eq!(error.kind(), expected, "{error}");
    }
    let tunnel = |ethernet| Tunnel::open(&TunnelSettings { ethernet, ..TunnelSettings::default() });
    match (tunnel(false), tunnel(true)) {
        (Ok(tun), Ok(tap)) => {
            assert!(Tap::from_descriptor(tun.as_fd().try_clone_to_owned().unwrap()).is_err());
            assert!(Tap::from_descriptor(tap.as_fd().try_clone_to_owned().unwrap()).is_ok());
        }
        (tun, _) => skip(Capability::Root, format!("TUN device: {:?}", tun.err())),
    }
    // The interface is removed between the two steps.
    assert!(ip("link add left type veth peer name right"));
    let removed = AfPacket::open_descriptor("left").unwrap();
    let plain = PacketSocket::open_descriptor("right", PacketSocketSettings::default()).unwrap();
    assert!(ip("link del left"));
    for descriptor in [removed, plain] {
        assert_eq!(AfPacket::from_descriptor(descriptor).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
