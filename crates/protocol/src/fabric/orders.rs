//! The orders, each with the type of its answer.

use super::error::FabricError;
use super::model::{
    Asked, BoxRuntime, CheckLimits, CheckOutcome, Configuration, ControllerReportReply, EventPage,
    FabricFacts, FileStatus, FlowDefinition, InventoryReply, LinkEnd, LogPage, NewPortNumbersReply,
    PortInventory, PortNumberMark, RewriteReply, Started, SteeringDefinition, SteeringReply, TrafficSnapshot,
    WritesReply,
};
use crate::agent::ControllerState;
use ::model::{
    AccountRow, AddPort as PortDefinition, AddressEntry, BoxName, CapturePoint, ConfigurationName, CoreCount,
    CreateBox, CreateSwitch, Diagnostic, FlowStatus, ImageDigest, MacAddr, OpenFlowPort, PortName,
    PortRequest, RecordedWrite, ServiceName, SwitchName,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// An order, with the type of its answer.
pub trait Ask: Into<Order> {
    /// The answer.
    type Answer: Serialize + DeserializeOwned;
}

macro_rules! orders {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? } -> $answer:ty;)*) => {
        /// An order.
        #[derive(Debug, Serialize, Deserialize)]
        pub enum Order {
            $($(#[$doc])* $name($name),)*
        }

        impl Order {
            /// The names of all orders, as they are encoded.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl From<$name> for Order {
                fn from(order: $name) -> Self {
                    Self::$name(order)
                }
            }

            impl Ask for $name {
                type Answer = $answer;
            }
        )*
    };
}

orders! {
    /// Does nothing. The answer shows that the thread that moves packets responds.
    Ping {} -> ();

    /// Lists all boxes and switches, for a daemon that adopts them.
    Inventory {} -> InventoryReply;

    /// What the fabric can run, and where.
    Facts {} -> FabricFacts;

    /// Adds a switch without ports: the ports of the definition are ignored.
    AddSwitch {
        /// The definition.
        definition: CreateSwitch,
    } -> ();

    /// How the connections to the controllers of a switch are, in their order.
    ControllerStates {
        /// The switch.
        switch: SwitchName,
    } -> Vec<ControllerState>;

    /// Answers a multipart request of OpenFlow 1.3.5 (7.3.5) about what controllers have added to a switch, from the part that
    /// begins at `from`; the first one begins at 0.
    ControllerReport {
        /// The switch.
        switch: SwitchName,
        /// The request: what follows the header of the message.
        request: ByteBuf,
        /// The part.
        from: u64,
    } -> ControllerReportReply;

    /// Removes a switch and its ports. Attached boxes are then attached to nothing.
    RemoveSwitch {
        /// The switch.
        switch: SwitchName,
    } -> ();

    /// Checks that a port of this name can be added, before its device is opened.
    CheckVacant {
        /// The switch.
        switch: SwitchName,
        /// The port.
        port: PortName,
    } -> ();

    /// Adds a port. A port with a device comes with the descriptors of its device; without any, it is down until
    /// [`ReopenPort`].
    AddPort {
        /// The switch.
        switch: SwitchName,
        /// The definition.
        port: PortDefinition,
        /// Why the descriptors are those of `af_packet`, if the definition says `af_xdp`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<String>,
    } -> ();

    /// Gives a port its device again. The descriptors come with the order.
    ReopenPort {
        /// The switch.
        switch: SwitchName,
        /// The definition.
        port: PortDefinition,
        /// Why the descriptors are those of `af_packet`, if the definition says `af_xdp`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instead: Option<String>,
    } -> ();

    /// The tap or the recording of a port, for a launcher that keeps it from now on. The answer comes with the descriptor, if
    /// the port has one.
    DuplicateDevice {
        /// The switch.
        switch: SwitchName,
        /// The port.
        port: PortName,
    } -> ();

    /// Adds a port that is one end of a pipe whose other end is in another fabric: creates a link between the two. The
    /// answer comes with two descriptors, for [`JoinLink`]. If the port exists, it gets the new link and keeps its counters:
    /// for a link whose other fabric has ended.
    OpenLink {
        /// The switch.
        switch: SwitchName,
        /// The definition: a pipe.
        port: PortDefinition,
    } -> ();

    /// Adds a port that is the other end of such a pipe, or gives it the new link. The two descriptors come with the order.
    JoinLink {
        /// The switch.
        switch: SwitchName,
        /// The definition: a pipe to the first end.
        port: PortDefinition,
    } -> ();

    /// Removes a port. The other end of a pipe is removed too; a box's port is then attached to nothing.
    RemovePort {
        /// The switch.
        switch: SwitchName,
        /// The port.
        port: PortName,
    } -> ();

    /// Assigns an address to a port of a static switch.
    SetAddress {
        /// The switch.
        switch: SwitchName,
        /// The address.
        mac: MacAddr,
        /// The port.
        port: PortName,
    } -> ();

    /// Removes an address from a static switch.
    RemoveAddress {
        /// The switch.
        switch: SwitchName,
        /// The address.
        mac: MacAddr,
    } -> ();

    /// Makes a port of a static switch, or none, the one that receives frames to unknown addresses.
    SetDefault {
        /// The switch.
        switch: SwitchName,
        /// The port.
        port: Option<PortName>,
    } -> ();

    /// Adds a flow to a steering switch.
    AddFlow {
        /// The switch.
        switch: SwitchName,
        /// The flow.
        flow: FlowDefinition,
    } -> ();

    /// Removes a flow from a steering switch.
    RemoveFlow {
        /// The switch.
        switch: SwitchName,
        /// The number of the flow.
        id: u64,
    } -> ();

    /// Some flows of a steering switch, in the order of their numbers. There may be more than it returns.
    Flows {
        /// The switch.
        switch: SwitchName,
        /// Their numbers are above this one.
        #[serde(default)]
        after: u64,
        /// How many at most. Absent: as many as the fabric puts into a reply.
        #[serde(default)]
        most: Option<u32>,
    } -> Vec<FlowStatus>;

    /// Gives a steering switch these services and chains instead of those that it has. Packets under way finish the chain
    /// that they are in.
    SetSteering {
        /// The switch.
        switch: SwitchName,
        /// The services and chains.
        steering: SteeringDefinition,
    } -> ();

    /// Gives names of a steering switch without ports these numbers, as controllers know them: they get no others. In the order
    /// in which they were given.
    SetPortNumbers {
        /// The switch.
        switch: SwitchName,
        /// The names and their numbers.
        numbers: Vec<(OpenFlowPort, u16)>,
    } -> ();

    /// The numbers of the ports, services and chains of a steering switch, as controllers know them, and of what its flows
    /// name.
    PortNumbers {
        /// The switch.
        switch: SwitchName,
    } -> Vec<(OpenFlowPort, u16)>;

    /// The numbers of names of a steering switch that it has given since a mark, also those of names that nothing has any more; not those
    /// that [`SetPortNumbers`] gave.
    NewPortNumbers {
        /// The switch.
        switch: SwitchName,
        /// The mark of an earlier answer. One that the fabric has not given, such as the default, stands for the begin.
        since: PortNumberMark,
    } -> NewPortNumbersReply;

    /// Accepts functions in other processes as instances of a service, at a socket that comes with the order: it listens, and
    /// keeps message boundaries. It takes the place of an earlier one.
    ServeFunctions {
        /// The switch.
        switch: SwitchName,
        /// The service.
        service: ServiceName,
        /// What functions have to know to be accepted.
        token: ByteBuf,
    } -> ();

    /// The state of the services and chains of a steering switch.
    Steering {
        /// The switch.
        switch: SwitchName,
    } -> SteeringReply;

    /// The address table of a switch.
    Addresses {
        /// The switch.
        switch: SwitchName,
    } -> Vec<AddressEntry>;

    /// The ports of a switch.
    Ports {
        /// The switch.
        switch: SwitchName,
    } -> Vec<PortInventory>;

    /// The counters of all ports.
    Traffic {} -> TrafficSnapshot;

    /// The accounts of the places through which packets pass.
    Account {
        /// The boxes, with their rings and pipes; absent: all.
        boxes: Option<Vec<BoxName>>,
        /// The switches, with their ports and links; absent: all.
        switches: Option<Vec<SwitchName>>,
        /// Also services and chains, which earlier versions do not know.
        #[serde(default)]
        services: bool,
    } -> Vec<AccountRow>;

    /// What passed the ends of links to other fabrics.
    LinkEnds {} -> Vec<LinkEnd>;

    /// Captures the packets that pass a port. The answer comes with the readable end of a socket.
    Capture {
        /// The port.
        point: CapturePoint,
        /// Bytes kept of each packet; absent: all.
        snap: Option<u32>,
        /// The number of packets after which the capture ends; absent: it does not.
        count: Option<u64>,
    } -> ();

    /// Loads an image for boxes that name it. A sealed memory file with it comes with the order. Without one, the image must
    /// be there already.
    LoadImage {
        /// Its digest, which the fabric takes as its name.
        image: ImageDigest,
        /// Its length.
        bytes: u64,
    } -> ();

    /// Forgets an image, unless a box names it.
    ForgetImage {
        /// Its digest.
        image: ImageDigest,
    } -> ();

    /// Defines a box and attaches its ports: all of them, or none. Its configuration text and files are ignored.
    DefineBox {
        /// The definition.
        definition: CreateBox,
        /// Whether it counts as stopped; otherwise as never started.
        stopped: bool,
        /// It is about to be started: its sandbox can be created meanwhile. An earlier fabric creates it later.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prepare: bool,
    } -> ();

    /// Defines boxes as by [`DefineBox`], one after the other. The answer has for each box why it was not defined.
    DefineBoxes {
        /// The definitions. Each says whether its box counts as stopped.
        boxes: Vec<(CreateBox, bool)>,
    } -> Vec<Option<FabricError>>;

    /// Kills a box if it runs, and forgets it.
    ForgetBox {
        /// The box.
        name: BoxName,
    } -> ();

    /// Creates and starts a box with these configurations.
    StartBox {
        /// The box.
        name: BoxName,
        /// The configurations, in the order of their installation.
        configurations: Vec<Configuration>,
        /// If the start fails, the box's restart policy decides whether the fabric tries again.
        restore: bool,
        /// The recorded writes to its handlers. A fabric that has or had them ignores them.
        #[serde(default)]
        writes: Vec<RecordedWrite>,
        /// Whether the recorded writes are executed again, whatever the definition says.
        #[serde(default)]
        replay: bool,
        /// Whether others that are equal to it are started as well, so that a template is worth its time at once.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        has_equals: bool,
    } -> Started;

    /// Defines a box as by [`DefineBox`], and starts it as by [`StartBox`]. If it cannot be started, it stays defined.
    LaunchBox {
        /// The definition.
        definition: CreateBox,
        /// The configurations, in the order of their installation.
        configurations: Vec<Configuration>,
        /// Writes to its handlers that are executed before its first packet.
        writes: Vec<RecordedWrite>,
    } -> Started;

    /// Ends a box: gracefully, or at once.
    StopBox {
        /// The box.
        name: BoxName,
        /// Whether the box may finish what it does.
        graceful: bool,
    } -> ();

    /// Suspends a running box.
    SuspendBox {
        /// The box.
        name: BoxName,
    } -> ();

    /// Resumes a suspended box.
    ResumeBox {
        /// The box.
        name: BoxName,
    } -> ();

    /// Kills a box as if it had crashed.
    KillBox {
        /// The box.
        name: BoxName,
    } -> ();

    /// Attaches a box's port as its definition says, if it is attached to nothing. The answer says whether it was.
    ReattachBox {
        /// The box.
        name: BoxName,
        /// The number of the port.
        number: u8,
        /// The definition of the port.
        port: PortRequest,
    } -> bool;

    /// Changes the share, the limit, the restart policy and the labels of a box.
    AlterBox {
        /// The new definition. Everything else in it is as before.
        definition: CreateBox,
    } -> ();

    /// Installs a configuration in a running box, or swaps the one of the same name. The answer has its warnings.
    Install {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: Configuration,
        /// The recorded writes that are executed again; those of the previous configuration that are missing are no longer
        /// needed. Absent: the definition of the box decides.
        #[serde(default)]
        writes: Option<Vec<RecordedWrite>>,
    } -> Vec<Diagnostic>;

    /// Replaces the text of a configuration by one that says what the box does already. The box is not touched.
    Redefine {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: Configuration,
        /// The recorded writes to it that remain.
        writes: Vec<RecordedWrite>,
    } -> ();

    /// Gives elements other arguments in the text of a configuration, in a box of its own that is then discarded.
    Rewrite {
        /// The configuration; only its text and its files count.
        configuration: Configuration,
        /// The elements, each with its arguments.
        changes: Vec<(String, String)>,
        /// The limits of all changes together. Absent: the default ones.
        #[serde(default)]
        limits: Option<CheckLimits>,
        /// The image of the box. Absent: the built-in one.
        #[serde(default)]
        image: Option<ImageDigest>,
    } -> RewriteReply;

    /// Removes a configuration from a running box.
    RemoveConfiguration {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: ConfigurationName,
    } -> ();

    /// Reads a handler of a running box.
    ReadHandler {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: ConfigurationName,
        /// The handler.
        handler: String,
        /// The argument; may be empty.
        argument: ByteBuf,
        /// How long the box may take, in milliseconds.
        timeout_ms: u32,
    } -> ByteBuf;

    /// Writes a handler of a running box. The answer has the write if it changed the configuration.
    WriteHandler {
        /// The box.
        name: BoxName,
        /// The configuration.
        configuration: ConfigurationName,
        /// The handler.
        handler: String,
        /// The value.
        value: ByteBuf,
    } -> Option<RecordedWrite>;

    /// The writes to a box's handlers that changed its configurations.
    Writes {
        /// The box.
        name: BoxName,
    } -> WritesReply;

    /// The state of boxes.
    BoxRuntimes {
        /// The boxes; none means all. Unknown names are left out.
        names: Vec<BoxName>,
        /// Which boxes are asked themselves for their counters.
        ask: Asked,
    } -> Vec<BoxRuntime>;

    /// A box's log.
    Log {
        /// The box.
        name: BoxName,
        /// The number of the last line that the daemon knows.
        after: u64,
        /// The most lines to return.
        most: u32,
    } -> LogPage;

    /// The files that a box has written.
    Files {
        /// The box.
        name: BoxName,
    } -> Vec<FileStatus>;

    /// Opens a file that a box has written. The answer has its present length, and comes with its descriptor.
    OpenFile {
        /// The box.
        name: BoxName,
        /// The file.
        file: String,
    } -> u64;

    /// Checks a configuration in a box of its own that is then discarded.
    Check {
        /// The configuration; only its text and its files count.
        configuration: Configuration,
        /// The number of ports.
        ports: u8,
        /// Its limits. Absent: the default ones.
        #[serde(default)]
        limits: Option<CheckLimits>,
        /// The image of the box. Absent: the built-in one.
        #[serde(default)]
        image: Option<ImageDigest>,
        /// The number of engines that run it together.
        #[serde(default)]
        cores: CoreCount,
        /// Ports that it must use: the faces of a service.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        faces: Vec<u8>,
    } -> CheckOutcome;

    /// Events since a number.
    Events {
        /// The number of the last event that the daemon knows.
        after: u64,
        /// The most events to return.
        most: u32,
    } -> EventPage;

    /// Serves further channels, whose descriptors come with the order, until the conversation ends. The daemon sends an order on one
    /// of them, and no other before its reply.
    OpenChannels {} -> ();

    /// Creates the files that boxes write in a folder, whose descriptor comes with the order.
    UseFolder {} -> ();

    /// Ends all boxes and the fabric when the connection ends: the daemon keeps its definitions in memory only, so that no
    /// other can adopt them.
    EndWithConnection {} -> ();

    /// Ends all boxes and the fabric.
    End {} -> ();
}
