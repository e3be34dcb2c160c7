//! The time from the request to a daemon to the first packet of a box on a switch. It includes the daemon, the
//! attachment, the installation of the configuration and the packet's way.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::client::{Address, Client, Credentials};
use api::{
    AddFlow, AddPort, Attachment, BoxName, CapturePoint, CaptureQuery, CreateBox, CreateService,
    CreateSwitch, Faces, FlowOutput, Limits, NameError, PortDriver, PortName, PortRequest, Sandbox,
    SwitchMode, SwitchName, operation,
};
use boundary::PlatformKind;
use capture::Decoder;
use serde::Serialize;

use super::test_bed::{REPLY_TIMEOUT, TestBed};
use super::workload::{PACKET, RULES};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{Times, milliseconds};
use crate::temporary_folder::TemporaryFolder;

/// The switch, and its port that receives the boxes' packets.
pub(super) const SWITCH: &str = "bench";
pub(super) const SINK: &str = "sink";

/// The socket in the daemon's folder.
const SOCKET: &str = "socket";

/// Offset of identifier and sequence number in the echo request.
const ECHO_IDENTIFIER: usize = 14 + 20 + 4;

/// Start-up times of a daemon's boxes that are started one after the other and all kept, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DaemonBoot {
    /// Number of boxes.
    pub boxes: usize,
    /// From the request to the box's first packet on the switch.
    pub first_packet_ms: Times,
    /// From the request to the daemon's reply.
    pub reply_ms: Times,
}

/// Starts `count` boxes with a daemon of its own, `program daemon`. Each is created by one request, is attached to a
/// switch, and runs a firewall of ten rules that is sent one packet. All configurations differ, so no box is a copy of
/// another.
pub(crate) fn daemon_boot(
    bed: &TestBed,
    program: &Path,
    count: usize,
    plan: SamplePlan,
) -> Result<Option<DaemonBoot>, MeasureError> {
    let sandbox = match bed.platform() {
        PlatformKind::Vm => Sandbox::Vm,
        PlatformKind::Process => Sandbox::Process,
        PlatformKind::Thread => return Ok(None),
    };
    let (mut packets, mut replies) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        // The daemon may use all cores, as without a benchmark.
        let daemon = bed.on_all_cores(|| Daemon::start(program))?;
        let arrivals = daemon.prepare(SwitchMode::Static, box_number)?;
        let starts = (0..count as u32).map(|number| daemon.boot(sandbox, number, &arrivals));
        let starts: Vec<(f64, f64)> = starts.collect::<Result<_, _>>()?;
        packets.push(Times::of(&starts.iter().map(|start| start.0).collect::<Vec<_>>()));
        replies.push(Times::of(&starts.iter().map(|start| start.1).collect::<Vec<_>>()));
    }
    Ok(Some(DaemonBoot {
        boxes: count,
        first_packet_ms: Times::median(&packets),
        reply_ms: Times::median(&replies),
    }))
}

/// A frame received at the sink: its number, such as that of its box, and its arrival time.
pub(crate) type Arrival = (u32, Duration);

/// The frames that are received at the sink.
pub(crate) type Arrivals = Receiver<Arrival>;

/// A daemon that ends when this is dropped.
pub(crate) struct Daemon {
    child: Child,
    /// Removed after the daemon has ended: fields are dropped after [`Drop::drop`].
    folder: TemporaryFolder,
    client: Client,
}

impl Daemon {
    pub(crate) fn start(program: &Path) -> Result<Self, MeasureError> {
        let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
        let socket = folder.path().join(SOCKET);
        let spawned = Command::new(program)
            .args(["daemon", "--until-input-ends", "--json", "--socket"])
            .arg(&socket)
            .arg("--store")
            .arg(folder.path().join("store"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = spawned.map_err(MeasureError::Daemon)?;
        // The daemon prints a line when it is ready, or none if it fails.
        let mut line = String::new();
        let ready = child.stdout.take().map(|pipe| BufReader::new(pipe).read_line(&mut line));
        let client = Client::persistent(Address::Unix(socket), &Credentials::default())?;
        let daemon = Self { child, folder, client };
        match ready {
            Some(Ok(1..)) => Ok(daemon),
            Some(Err(error)) => Err(MeasureError::Daemon(error)),
            _ => Err(MeasureError::Late { what: "the daemon" }),
        }
    }

    /// Creates the switch and listens at its sink, where packets to unknown addresses go, or those that no other flow concerns.
    /// `number` is read from each frame; others are left out.
    pub(crate) fn prepare(
        &self,
        mode: SwitchMode,
        number: fn(&[u8]) -> Option<u32>,
    ) -> Result<Arrivals, MeasureError> {
        let sink = AddPort {
            name: name::<PortName>(SINK)?,
            driver: PortDriver::Null {},
            addresses: Vec::new(),
            default: mode == SwitchMode::Static,
            limits: Limits::default(),
        };
        let switch =
            CreateSwitch { mode, ports: vec![sink], ..CreateSwitch::new(name::<SwitchName>(SWITCH)?) };
        self.client.send(&operation::CREATE_SWITCH, &[], &switch)?;
        if mode == SwitchMode::Steering {
            let flow = AddFlow {
                condition: None,
                in_port: None,
                output: FlowOutput::Port(name(SINK)?),
                priority: None,
                idle_seconds: None,
                timeout_seconds: None,
            };
            self.client.send(&operation::ADD_FLOW, &[SWITCH], &flow)?;
        }
        let port = CapturePoint::Switch(name(SWITCH)?, name(SINK)?);
        let query = CaptureQuery { port, snap: None, count: None };
        let capture = self.client.call(&operation::CAPTURE, &[], &query, &())?;
        let (sender, arrivals) = channel();
        // The thread ends with the daemon.
        std::thread::spawn(move || {
            let (mut capture, mut decoder) = (capture, Decoder::new());
            while let Ok(count @ 1..) = capture.read(decoder.space()) {
                decoder.filled(count);
                while let Ok(Some(record)) = decoder.record() {
                    let Some(number) = number(record.bytes) else { continue };
                    let time = Duration::from_nanos(record.time_ns.try_into().unwrap_or_default());
                    if sender.send((number, time)).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(arrivals)
    }

    /// The connection to it.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The folder with its store.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The socket of its API.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// Starts one box; returns the milliseconds to its first packet and to the daemon's reply.
    pub(super) fn boot(
        &self,
        sandbox: Sandbox,
        number: u32,
        arrivals: &Arrivals,
    ) -> Result<(f64, f64), MeasureError> {
        let request = CreateBox {
            sandbox,
            ports: vec![PortRequest {
                attach: Attachment::Switch(name(SWITCH)?),
                mac: None,
                // The packet has the source of the capture that it is from.
                limits: Limits { transparent: true, ..Limits::default() },
            }],
            ..CreateBox::new(name::<BoxName>(&format!("box{number}"))?, configuration(number))
        };
        self.time(number, arrivals, |client| client.send(&operation::CREATE_BOX, &[], &request).map(drop))
    }

    /// Creates a service with one instance; returns the milliseconds to its first packet and to the daemon's reply.
    pub(crate) fn boot_service(
        &self,
        sandbox: Sandbox,
        number: u32,
        arrivals: &Arrivals,
    ) -> Result<(f64, f64), MeasureError> {
        let service = format!("service{number}");
        let request = CreateService {
            name: name(&service)?,
            switch: name(SWITCH)?,
            instance: CreateBox {
                sandbox,
                ..CreateBox::new(name::<BoxName>(&service)?, configuration(number))
            },
            faces: Faces::default(),
            replicas: 1,
            auto: None,
            dead_after_ms: None,
            places: None,
            trust_pool: false,
            may_send_to: BTreeSet::new(),
            translation: None,
            container: false,
        };
        self.time(number, arrivals, |client| client.send(&operation::CREATE_SERVICE, &[], &request).map(drop))
    }

    /// Makes a request, or runs a command, whose box sends a packet with this number; returns the milliseconds to the packet and to the reply.
    pub(super) fn time<E>(
        &self,
        number: u32,
        arrivals: &Arrivals,
        request: impl FnOnce(&Client) -> Result<(), E>,
    ) -> Result<(f64, f64), MeasureError>
    where
        MeasureError: From<E>,
    {
        let (clock, begin) =
            (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now());
        request(&self.client)?;
        let reply = milliseconds(begin.elapsed());
        loop {
            let (from, time) = arrivals
                .recv_timeout(REPLY_TIMEOUT)
                .map_err(|_| MeasureError::Late { what: "the first packet of a box" })?;
            if from == number {
                return Ok((milliseconds(time.saturating_sub(clock)), reply));
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The daemon exits when its standard input closes.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The number of its box that a frame ends with.
pub(super) fn box_number(frame: &[u8]) -> Option<u32> {
    frame.last_chunk().map(|number| u32::from_be_bytes(*number))
}

pub(super) fn name<T: std::str::FromStr<Err = NameError>>(text: &str) -> Result<T, MeasureError> {
    text.parse().map_err(MeasureError::Name)
}

/// A firewall that is sent a single packet, whose echo request has the number of the box as identifier and sequence
/// number. These are its last bytes, because the header check cuts off what follows the IP packet.
pub(super) fn configuration(number: u32) -> String {
    let (packet, _) = PACKET.split_at(ECHO_IDENTIFIER);
    let bytes =
        packet.iter().chain(&number.to_be_bytes()).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "InfiniteSource(DATA \\<{bytes}>, LIMIT 1) -> CheckIPHeader(14) -> IPFilter({RULES}) -> ToDevice(0);\n\
         FromDevice(0) -> seen :: Counter -> Discard;"
    )
}
