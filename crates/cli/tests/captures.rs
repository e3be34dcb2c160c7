//! Large captures: they are read in place, with the same result as by system calls.

use capture::{LinkType, PcapEncoder};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A capture of more than two windows of what is mapped at once, with short packets, which are read in place. Some packets were cut
/// off, and some are longer than a buffer.
fn capture(packets: u32) -> Vec<u8> {
    let encoder = PcapEncoder::new(LinkType::ETHERNET);
    let mut bytes = encoder.file_header().to_vec();
    for number in 0..packets {
        let length = match number % 1000 {
            999 => 60_000,
            _ => 60 + number * 7919 % 97,
        };
        let contents = vec![number as u8; length as usize];
        let time_ns = 1_700_000_000_000_000_000 + i64::from(number) * 1_000_000;
        encoder.record(time_ns, length + number % 3, &contents, &mut bytes);
    }
    bytes
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures").join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// What `ToDump` writes of the packets of a capture.
fn copied(folder: &Path, arguments: &str, batch: &str) -> (Vec<u8>, String) {
    let text = format!("FromDump(in.pcap, STOP true, {arguments}) -> ToDump(out.pcap, SNAPLEN 0);");
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["run", "-q", "--batch", batch, "-e", &text])
        .current_dir(folder)
        .output()
        .expect("it ends");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    (fs::read(folder.join("out.pcap")).expect("a capture"), messages)
}

#[test]
fn a_large_capture_is_read_in_place() {
    let folder = folder("place");
    let capture = capture(55_000);
    assert!(capture.len() > 9 << 20);
    for (cut, batch) in [(0, "1"), (0, "256"), (5, "256"), (1_000, "7")] {
        let input = &capture[..capture.len() - cut];
        fs::write(folder.join("in.pcap"), input).expect("a capture");
        let (in_place, messages) = copied(&folder, "MMAP true", batch);
        let (by_calls, other_messages) = copied(&folder, "MMAP false", batch);
        assert_eq!(messages, other_messages);
        assert!(in_place == by_calls, "{} and {} bytes", in_place.len(), by_calls.len());
        assert!(cut > 0 || in_place == input, "{} bytes of {}", in_place.len(), input.len());
        assert!(cut == 0 || input.starts_with(&in_place) && in_place.len() < input.len());
    }
    // Where other ways of reading come before or between.
    for arguments in
        ["START_AFTER 2", "END_AFTER 30", "SAMPLE 0.5", "FILEPOS 24", "BURST 100", "FORCE_IP true"]
    {
        let (in_place, _) = copied(&folder, arguments, "256");
        let (by_calls, _) = copied(&folder, &format!("{arguments}, MMAP false"), "256");
        let is_random = arguments.starts_with("SAMPLE");
        assert!(is_random || in_place == by_calls, "{arguments}");
    }
}

#[test]
fn a_capture_that_becomes_shorter_ends_early() {
    let folder = folder("shorter");
    fs::write(folder.join("in.pcap"), capture(55_000)).expect("a capture");
    let text =
        "d :: FromDump(in.pcap, STOP true) -> Counter(COUNT_CALL 1000 s.run) -> c :: Counter -> Discard;
        s :: Script(TYPE PASSIVE, write d.active false, print \"paused\");
        ControlSocket(unix, control);";
    let mut process = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["click", "-h", "c.count", "-e", text])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "paused\n");
    let file = File::options().write(true).open(folder.join("in.pcap")).expect("the capture");
    file.set_len(1 << 16).expect("it is shorter");
    let mut control = UnixStream::connect(folder.join("control")).expect("a connection");
    control.write_all(b"WRITE d.active true\n").expect("written");
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("a count");
    let output = process.wait_with_output().expect("it ends");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    assert_eq!(messages.lines().collect::<Vec<_>>(), ["in.pcap: the file became shorter while it was read"]);
    let count: u64 = rest.trim().parse().expect("a number");
    assert!((1_000..55_000).contains(&count), "{count}");
}
