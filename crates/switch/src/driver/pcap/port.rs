//! A port that replays one capture file and records to another.

use super::{PcapError, PcapReader, PcapWriter};
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum frames per visit when there is no rate.
const BURST: usize = 64;

/// Replays the frames of one capture, optionally at a fixed rate, and records sent frames to another.
#[derive(Debug)]
pub struct PcapPort {
    reader: Option<CapturePlayer>,
    writer: Option<PcapWriter<BufWriter<File>>>,
}

#[derive(Debug)]
struct CapturePlayer {
    file: Arc<File>,
    reader: PcapReader<FromStart>,
    /// The file has yielded no frame since it was opened.
    is_unusable: bool,
    /// Remaining repetitions after the current one; `None` repeats forever.
    repeats_left: Option<u32>,
    /// The rate in packets per second, and the packets received since the start time.
    rate: Option<u64>,
    since: Instant,
    given: u64,
    /// Frames that were read but are not due yet.
    waiting: Batch,
    next: usize,
}

/// Reads a file from its start. It keeps its own position, because another process may have a duplicate of the
/// descriptor.
#[derive(Debug)]
struct FromStart {
    file: Arc<File>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

fn reader(file: &Arc<File>) -> Result<PcapReader<FromStart>, PcapError> {
    PcapReader::new(FromStart { file: file.clone(), position: 0 })
}

/// Refuses pipes and devices, because reading them could block all traffic.
fn check_file(file: &File) -> Result<(), PcapError> {
    match file.metadata()?.is_file() {
        true => Ok(()),
        false => Err(PcapError::NotAFile),
    }
}

impl PcapPort {
    /// Opens a port that replays `read` `repeat` times (0: forever), at `rate` packets per second or as fast as they
    /// are received, and records to `write`, which must not exist yet.
    pub fn open(
        read: Option<&Path>,
        write: Option<&Path>,
        repeat: u32,
        rate: Option<u64>,
    ) -> Result<Self, PcapError> {
        // A capture that can't be replayed must not leave an empty recording.
        let player = |path| CapturePlayer::new(Self::open_replay(path)?, repeat, rate);
        let reader = read.map(player).transpose()?;
        let create = |path| PcapWriter::resume(Self::create_recording(path)?);
        Ok(Self { reader, writer: write.map(create).transpose()? })
    }

    /// The part of [`open`](Self::open) that needs access to `read`.
    pub fn open_replay(path: &Path) -> Result<File, PcapError> {
        // Opening a device may have effects of its own. The file may be replaced after this check, so the second check
        // is of what was opened, without waiting for the other end of a pipe.
        if !std::fs::metadata(path)?.is_file() {
            return Err(PcapError::NotAFile);
        }
        let file =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
        check_file(&file)?;
        Ok(file)
    }

    /// The part of [`open`](Self::open) that needs access to the folder of `write`.
    pub fn create_recording(path: &Path) -> Result<File, PcapError> {
        // Frames are as private as the traffic, so only this user may read the file.
        Ok(OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?)
    }

    /// The rest of [`open`](Self::open), with files that another process opened. A recording that has frames already is
    /// continued.
    pub fn from_files(
        read: Option<File>,
        write: Option<File>,
        repeat: u32,
        rate: Option<u64>,
    ) -> Result<Self, PcapError> {
        read.iter().chain(&write).try_for_each(check_file)?;
        let reader = read.map(|file| CapturePlayer::new(file, repeat, rate)).transpose()?;
        Ok(Self { reader, writer: write.map(PcapWriter::resume).transpose()? })
    }
}

impl CapturePlayer {
    fn new(file: File, repeat: u32, rate: Option<u64>) -> Result<Self, PcapError> {
        let file = Arc::new(file);
        Ok(Self {
            reader: reader(&file)?,
            file,
            is_unusable: true,
            repeats_left: repeat.checked_sub(1),
            rate,
            since: Instant::now(),
            given: 0,
            waiting: Batch::new(BURST),
            next: 0,
        })
    }

    /// The number of packets that are due.
    fn due(&self) -> usize {
        match self.rate {
            None => BURST,
            Some(rate) => {
                let due =
                    u128::from(rate) * self.since.elapsed().as_nanos() / Duration::from_secs(1).as_nanos();
                usize::try_from(due.saturating_sub(u128::from(self.given))).unwrap_or(usize::MAX)
            }
        }
    }

    /// The time until the next packet is due. `None` if there is no rate, or no next packet.
    fn due_in(&self) -> Option<Duration> {
        let rate = self.rate.filter(|rate| *rate > 0 && !self.is_over())?;
        let nanoseconds =
            (u128::from(self.given) + 1) * Duration::from_secs(1).as_nanos() / u128::from(rate) + 1;
        let due = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        Some(due.saturating_sub(self.since.elapsed()))
    }

    fn is_over(&self) -> bool {
        self.reader.is_at_end() && self.repeats_left == Some(0) && self.next >= self.waiting.len()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        let mut due = self.due().min(batch.room());
        while due > 0 {
            if let Some(frame) = self.waiting.frame(self.next) {
                batch.push(frame);
                self.next += 1;
                self.given += 1;
                due -= 1;
                continue;
            }
            self.waiting.clear();
            self.next = 0;
            received.long += self.reader.receive(&mut self.waiting)?.long;
            self.is_unusable &= self.waiting.is_empty();
            if !self.waiting.is_empty() {
                continue;
            }
            if !self.reader.is_at_end() {
                // All records in this part were unusable: the next visit continues after them.
                break;
            }
            match &mut self.repeats_left {
                Some(0) => break,
                Some(left) => *left -= 1,
                None => {}
            }
            if self.is_unusable {
                // Repeating a capture without packets would be an endless loop.
                self.repeats_left = Some(0);
                break;
            }
            self.reader = reader(&self.file).map_err(io::Error::other)?;
            self.is_unusable = true;
        }
        Ok(received)
    }
}

impl Driver for PcapPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.reader.as_mut().map_or(Ok(Received::default()), |reader| reader.receive(batch))
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        match &mut self.writer {
            Some(writer) => writer.send(batch, frames),
            None => {
                let length = |number: &u32| batch.frame(*number as usize).map_or(0, <[u8]>::len) as u64;
                Ok(Sent {
                    frames: frames.len() as u64,
                    bytes: frames.iter().map(length).sum(),
                    ..Sent::default()
                })
            }
        }
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        if let Some(writer) = &mut self.writer {
            writer.prepare_sleep()?;
        }
        Ok(self.reader.as_ref().is_none_or(|reader| reader.is_over() || reader.due() == 0))
    }

    fn device(&self) -> Option<BorrowedFd<'_>> {
        self.writer.as_ref().map(PcapWriter::recording)
    }

    fn due_in(&self) -> Option<Duration> {
        self.reader.as_ref()?.due_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_replayed_the_requested_number_of_times() {
        let folder = std::env::temp_dir().join(format!("clickbox-replay-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, second) = (folder.join("first.pcap"), folder.join("second.pcap"));
        let mut batch = Batch::new(100);
        while batch.push(&[batch.len() as u8; 60]) {}
        let numbers: Vec<u32> = (0..100).collect();
        {
            let mut writer = PcapPort::open(None, Some(&first), 1, None).unwrap();
            assert_eq!(writer.send(&batch, &numbers).unwrap().frames, 100);
            assert!(writer.prepare_sleep().unwrap());
        }
        assert!(PcapPort::open(None, Some(&first), 1, None).is_err());
        let mut player = PcapPort::open(Some(&first), Some(&second), 3, None).unwrap();
        let mut count = 0;
        while !player.prepare_sleep().unwrap() {
            let mut came = Batch::new(70);
            player.receive(&mut came).unwrap();
            assert!(came.frames().all(|frame| frame[0] as usize == (count % 100) && {
                count += 1;
                true
            }));
        }
        assert_eq!(count, 300);
        let (start, mut count) = (Instant::now(), 0);
        let mut paced = PcapPort::open(Some(&first), None, 0, Some(1000)).unwrap();
        assert!(paced.due_in().is_some_and(|time| time <= Duration::from_millis(2)));
        assert_eq!(player.due_in(), None);
        while count < 150 {
            let mut came = Batch::new(70);
            paced.receive(&mut came).unwrap();
            count += came.len();
        }
        assert!(start.elapsed() >= Duration::from_millis(149));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_recorded_capture_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("clickbox-private-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("recorded.pcap");
        drop(PcapPort::open(None, Some(&path), 1, None).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A recording goes on where its last whole record ends, wherever its previous writer was killed.
    #[test]
    fn a_recording_is_continued() {
        let folder = std::env::temp_dir().join(format!("clickbox-continued-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, cut) = (folder.join("first.pcap"), folder.join("cut.pcap"));
        let mut batch = Batch::new(3);
        while batch.push(&[batch.len() as u8; 60]) {}
        let mut writer = PcapPort::open(None, Some(&first), 1, None).unwrap();
        writer.send(&batch, &[0, 1, 2]).unwrap();
        writer.prepare_sleep().unwrap();
        let bytes = std::fs::read(&first).unwrap();
        for length in 0..=bytes.len() {
            let _ = std::fs::remove_file(&cut);
            let file = PcapPort::create_recording(&cut).unwrap();
            file.write_all_at(&bytes[..length], 0).unwrap();
            // The launcher's duplicate, whose position is that of the previous writer.
            let kept = file.try_clone().unwrap();
            let mut writer = PcapPort::from_files(None, Some(file), 1, None).unwrap();
            writer.send(&batch, &[2]).unwrap();
            writer.prepare_sleep().unwrap();
            let mut replay = PcapPort::from_files(Some(kept), None, 1, None).unwrap();
            let mut came = Batch::new(10);
            while !replay.prepare_sleep().unwrap() {
                replay.receive(&mut came).unwrap();
            }
            let whole = length.saturating_sub(24) / 76;
            let expected: Vec<u8> = (0..whole as u8).chain([2]).collect();
            assert!(came.frames().map(|frame| frame[0]).eq(expected), "cut after {length} bytes");
        }
        // What another program wrote is not touched.
        std::fs::write(&cut, [7; 100]).unwrap();
        let other = OpenOptions::new().read(true).write(true).open(&cut).unwrap();
        assert!(PcapPort::from_files(None, Some(other), 1, None).is_err());
        assert_eq!(std::fs::read(&cut).unwrap(), [7; 100]);
        let (pipe, _other) = io::pipe().unwrap();
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert!(matches!(PcapPort::from_files(Some(pipe), None, 1, None), Err(PcapError::NotAFile)));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A capture whose records are all too long does not stall the switch, and a named pipe is refused.
    #[test]
    fn a_capture_without_usable_packets_does_not_stall() {
        let folder = std::env::temp_dir().join(format!("clickbox-unusable-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (long, fifo) = (folder.join("long.pcap"), folder.join("fifo"));
        drop(PcapPort::open(None, Some(&long), 1, None).unwrap());
        let mut bytes = std::fs::read(&long).unwrap();
        for _ in 0..3 * BURST {
            bytes.extend([0u32, 0, 5000, 5000].iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend([9; 5000]);
        }
        std::fs::write(&long, bytes).unwrap();
        let mut player = PcapPort::open(Some(&long), None, 0, None).unwrap();
        let visit = |player: &mut PcapPort| player.receive(&mut Batch::new(70)).unwrap().long;
        assert_eq!([(); 3].map(|()| visit(&mut player)), [BURST as u64; 3]);
        while !player.prepare_sleep().unwrap() {
            assert_eq!(visit(&mut player), 0);
        }
        let path = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the path is a terminated string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        let error = PcapPort::open(Some(&fifo), None, 1, None).unwrap_err().to_string();
        assert!(error.contains("ordinary file"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
