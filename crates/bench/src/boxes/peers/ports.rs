//! Ports to other processes, measured beside two processes of DPDK's testpmd that use the same protocol.
//!
//! One end sends frames of minimum size as fast as it can, and the other one discards them. First both are testpmd, then a switch
//! takes the place of one. Each end has a core.

use super::memif;
use super::process::START_TIMEOUT;
use super::testpmd::{PERIOD, RECEIVED, Testpmd, rates};
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use crate::temporary_folder::TemporaryFolder;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};
use switch::driver::{MemifPort, MemifSettings, Null, Received, Sent, VhostUser};
use switch::{Batch, Driver, DriverError, MacAddr, PortId, PortSettings, StaticTable, SwitchRunner};

/// Bytes of a frame: testpmd generates no shorter ones.
const SIZE: usize = 64;

/// Where testpmd sends its frames, and where they come from.
const HEADER: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0];

/// The time in which both sides reach their speed.
const WARM_UP: Duration = Duration::from_millis(500);

/// Visits to the ports between two readings of the clock.
const VISITS_PER_CLOCK_READ: u32 = 256;

/// What a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerDriver {
    /// A memif interface.
    Memif,
    /// A virtio network device. The server is its back end, and the client its front end.
    VhostUser,
}

/// The side of a connection that listens, or the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerRole {
    /// It listens.
    Server,
    /// It connects.
    Client,
}

/// The rate of a port in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortRate {
    /// What the port is.
    pub driver: PeerDriver,
    /// The side that the switch has.
    pub role: PeerRole,
    /// Whether the switch sends.
    pub sends: bool,
    /// Millions of frames per second between the switch and testpmd.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// The same between two processes of testpmd.
    #[serde(serialize_with = "rounded")]
    pub testpmd_mpps: f64,
}

/// A port from which frames come without end.
struct Source([u8; SIZE]);

impl Driver for Source {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        while let Some(space) = batch.space() {
            if let Some(space) = space.first_chunk_mut() {
                *space = self.0;
            }
            batch.commit(SIZE);
        }
        Ok(Received::default())
    }

    fn send(&mut self, _: &Batch, _: &[u32]) -> Result<Sent, DriverError> {
        Ok(Sent::default())
    }
}

impl PeerDriver {
    /// The sides that a switch can have.
    fn roles(self) -> &'static [PeerRole] {
        match self {
            Self::Memif => &[PeerRole::Server, PeerRole::Client],
            Self::VhostUser => &[PeerRole::Server],
        }
    }

    /// The device of testpmd.
    fn device(self, role: PeerRole, path: &Path) -> String {
        match (self, role) {
            (Self::Memif, _) => memif(0, role == PeerRole::Server, path),
            (Self::VhostUser, PeerRole::Server) => format!("net_vhost0,iface={},queues=1", path.display()),
            (Self::VhostUser, PeerRole::Client) => {
                format!("net_virtio_user0,path={},queues=1,queue_size=1024", path.display())
            }
        }
    }

    /// The driver of a switch.
    fn open(self, role: PeerRole, path: &Path) -> std::io::Result<Box<dyn Driver>> {
        if self == Self::VhostUser {
            return Ok(Box::new(VhostUser::server(UnixListener::bind(path)?.into())?));
        }
        let (socket, address) = (seqpacket()?, SocketAddrUnix::new(path)?);
        let port = if role == PeerRole::Server {
            bind(&socket, &address)?;
            listen(&socket, 1)?;
            MemifPort::server(socket, MemifSettings::default())
        } else {
            connect(&socket, &address)?;
            MemifPort::client(socket, MemifSettings::default())
        };
        Ok(Box::new(port?))
    }
}

fn seqpacket() -> std::io::Result<OwnedFd> {
    Ok(socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?)
}

/// Measures a port in both directions, in each role that a switch can have.
///
/// # Errors
///
/// The program can't be started, ends by itself, or moves no packets.
pub fn port_rates(
    program: &Path,
    bed: &TestBed,
    driver: PeerDriver,
    plan: SamplePlan,
) -> Result<Vec<PortRate>, MeasureError> {
    let mut all = Vec::new();
    for sender in [PeerRole::Client, PeerRole::Server] {
        let roles = driver.roles();
        let mut pairs = Vec::new();
        let mut ours = vec![Vec::new(); roles.len()];
        // The programs take turns, because others use the machine too.
        for _ in 0..plan.runs.max(1) {
            pairs.push(pair(program, bed, driver, sender)?);
            for (role, rates) in roles.iter().zip(&mut ours) {
                rates.push(with_switch(program, bed, driver, *role, *role == sender, plan.time)?);
            }
        }
        let testpmd_mpps = median(pairs);
        for (role, rates) in roles.iter().zip(ours) {
            let (role, sends, mpps) = (*role, *role == sender, median(rates));
            all.push(PortRate { driver, role, sends, mpps, testpmd_mpps });
        }
    }
    Ok(all)
}

/// What testpmd does with packets.
fn mode(sends: bool) -> &'static str {
    if sends { "txonly" } else { "rxonly" }
}

/// Whether testpmd has prepared its ports.
fn is_started(text: &str) -> Option<()> {
    text.contains("Port statistics").then_some(())
}

/// Millions of frames per second between two processes of testpmd.
fn pair(program: &Path, bed: &TestBed, driver: PeerDriver, sender: PeerRole) -> Result<f64, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let (folder, path) = (folder.path(), folder.path().join("socket"));
    let (near, far) = bed.cores();
    let start = |number: usize, core: usize, role: PeerRole| {
        let devices = [driver.device(role, &path)];
        let testpmd = Testpmd { program, folder, mode: mode(role == sender), queues: 1 };
        bed.on_all_cores(|| testpmd.start(number, core, &devices))
    };
    let mut server = start(0, near, PeerRole::Server)?;
    server.until("testpmd to start", START_TIMEOUT, is_started)?;
    let mut client = start(1, far, PeerRole::Client)?;
    let receiver = if sender == PeerRole::Server { &mut client } else { &mut server };
    // The first rate is that of a part of its time.
    let time = START_TIMEOUT + 3 * Duration::from_secs(PERIOD);
    let rate = receiver.until("packets of testpmd", time, |text| {
        rates(text, 0, RECEIVED).into_iter().skip_while(|rate| *rate == 0.0).nth(2)
    })?;
    Ok(rate / 1e6)
}

/// Millions of frames per second between a switch and testpmd, which has the other role.
fn with_switch(
    program: &Path,
    bed: &TestBed,
    driver: PeerDriver,
    role: PeerRole,
    sends: bool,
    time: Duration,
) -> Result<f64, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let (folder, path) = (folder.path(), folder.path().join("socket"));
    let (_, far) = bed.cores();
    let start = |role: PeerRole| {
        let devices = [driver.device(role, &path)];
        let testpmd = Testpmd { program, folder, mode: mode(!sends), queues: 1 };
        bed.on_all_cores(|| testpmd.start(0, far, &devices))
    };
    let open = || driver.open(role, &path).map_err(MeasureError::Folder);
    let (port, mut peer) = if role == PeerRole::Server {
        (open()?, start(PeerRole::Client)?)
    } else {
        let mut peer = start(PeerRole::Server)?;
        peer.until("testpmd to start", START_TIMEOUT, is_started)?;
        (open()?, peer)
    };
    let mut runner = SwitchRunner::new(StaticTable::new()).map_err(MeasureError::Folder)?;
    let port = runner.add_port(port, PortSettings::default())?;
    let other: Box<dyn Driver> = if sends {
        let mut frame = [0; SIZE];
        frame.iter_mut().zip(HEADER).for_each(|(byte, value)| *byte = value);
        Box::new(Source(frame))
    } else {
        Box::new(Null)
    };
    let other = runner.add_port(other, PortSettings::default())?;
    let to = if sends { port } else { other };
    let destination = MacAddr([2, 0, 0, 0, 0, 0]);
    // An empty table has room; without the address, no frame would come.
    let _ = runner.switch().forward_mut().insert(destination, to);
    let rate = rate(&mut runner, to, time)?;
    // The peer says whether it really got something.
    if sends {
        let time = START_TIMEOUT;
        peer.until("packets at testpmd", time, |text| {
            rates(text, 0, RECEIVED).into_iter().find(|rate| *rate > 0.0)
        })?;
    }
    Ok(rate)
}

/// Millions of frames per second that a switch sends by a port.
fn rate(runner: &mut SwitchRunner<StaticTable>, port: PortId, time: Duration) -> Result<f64, MeasureError> {
    let mut move_until = |end: &dyn Fn(u64, Duration) -> bool| {
        let (begin, before) = (Instant::now(), sent(runner, port));
        loop {
            (0..VISITS_PER_CLOCK_READ).for_each(|_| _ = runner.step());
            let (moved, took) = (sent(runner, port) - before, begin.elapsed());
            if end(moved, took) {
                return (moved, took);
            }
        }
    };
    let (moved, _) = move_until(&|moved, took| moved > 0 || took > START_TIMEOUT);
    if moved == 0 {
        return Err(MeasureError::Late { what: "the first packet" });
    }
    move_until(&|_, took| took > WARM_UP);
    let (moved, took) = move_until(&|_, took| took > time);
    Ok(moved as f64 / took.as_secs_f64() / 1e6)
}

fn sent(runner: &mut SwitchRunner<StaticTable>, port: PortId) -> u64 {
    runner.counters(port).map_or(0, |counters| counters.sent_frames)
}
