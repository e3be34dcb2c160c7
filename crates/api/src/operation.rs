//! The table of operations: method, path, summary, and the types of requests and replies.
//!
//! A path has its parameters in braces, in the notation of OpenAPI and axum. Each parameter is percent-encoded, so a
//! handler may contain slashes as `%2F`. Parameters are names of this crate's types, except `{handler}`, which
//! [`HandlerPath::of`](crate::HandlerPath::of) parses: `element.handler` or `configuration:element.handler`.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::*;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads without side effects.
    Get,
    /// Performs an action.
    Post,
    /// Sets something; idempotent.
    Put,
    /// Removes something.
    Delete,
}

impl Method {
    /// The method's name in HTTP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// The type of a request body, or of the body of a reply with status 200 (204 for [`Nothing`]).
pub trait Body {
    /// The media type; `None` if there is no body.
    const MEDIA: Option<&'static str>;

    /// The JSON schema of the body, or of each of its lines.
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
}

/// No body; no query.
#[derive(Debug, Serialize)]
pub struct Nothing;

/// A value as JSON.
#[derive(Debug)]
pub struct Json<T>(PhantomData<T>);

/// Values as JSON, one per line; the stream may be endless.
#[derive(Debug)]
pub struct Lines<T>(PhantomData<T>);

/// A capture in libpcap's format with nanosecond timestamps; the stream may be endless.
#[derive(Debug)]
pub struct Capture;

/// Raw bytes.
#[derive(Debug)]
pub struct Bytes;

/// Counters in the text format of Prometheus.
#[derive(Debug)]
pub struct Metrics;

impl Body for Nothing {
    const MEDIA: Option<&'static str> = None;
}

impl<T: JsonSchema> Body for Json<T> {
    const MEDIA: Option<&'static str> = Some("application/json");

    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
}

impl<T: JsonSchema> Body for Lines<T> {
    const MEDIA: Option<&'static str> = Some("application/x-ndjson");

    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
}

impl Body for Capture {
    const MEDIA: Option<&'static str> = Some("application/vnd.tcpdump.pcap");
}

impl Body for Bytes {
    const MEDIA: Option<&'static str> = Some("application/octet-stream");

    /// Generators of clients leave out an operation whose body has no schema.
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        Some(schemars::json_schema!({ "type": "string", "format": "binary" }))
    }
}

impl Body for Metrics {
    const MEDIA: Option<&'static str> = Some("text/plain; version=0.0.4; charset=utf-8");
}

/// The type of a URL query.
pub trait Query {
    /// The schema of an object whose properties are the query parameters.
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
}

impl Query for Nothing {}

macro_rules! queries {
    ($($type:ty),*) => {$(
        impl Query for $type {
            fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
                Some(<$type>::json_schema(generator))
            }
        }
    )*};
}

queries!(
    AccountQuery,
    ApplyQuery,
    ControllerEntriesQuery,
    RemoveQuery,
    LogQuery,
    EventQuery,
    AuditQuery,
    CaptureQuery,
    StopQuery,
    RestartQuery
);

/// An operation with its types: the query `Q`, the request body `I` and the reply body `O`.
#[derive(Debug)]
pub struct Operation<Q, I, O> {
    /// Its name, in OpenAPI and in code.
    pub name: &'static str,
    /// The method.
    pub method: Method,
    /// The path, parameters in braces.
    pub path: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The error codes that it can return, in addition to those of any operation (`invalid`, `forbidden`, `denied`, `internal`).
    pub errors: &'static [ErrorCode],
    /// The right that it needs.
    pub right: Right,
    types: PhantomData<fn(Q, I) -> O>,
}

/// An operation without its types, as an entry of the [`TABLE`].
pub trait Entry: Sync {
    /// The operation's name.
    fn name(&self) -> &'static str;
    /// The method.
    fn method(&self) -> Method;
    /// The path, parameters in braces.
    fn path(&self) -> &'static str;
    /// What it does, in a sentence.
    fn summary(&self) -> &'static str;
    /// The error codes that it can return.
    fn errors(&self) -> &'static [ErrorCode];
    /// The right that it needs.
    fn right(&self) -> Right;
}

/// An operation with the schemas of its types, from which the OpenAPI document is generated.
pub(crate) trait Typed: Entry {
    /// The schema of the query.
    fn query(&self, generator: &mut SchemaGenerator) -> Option<Schema>;
    /// Media type and schema of the request body.
    fn request(&self, generator: &mut SchemaGenerator) -> (Option<&'static str>, Option<Schema>);
    /// Media type and schema of the reply body.
    fn reply(&self, generator: &mut SchemaGenerator) -> (Option<&'static str>, Option<Schema>);
}

impl<Q: Query, I: Body, O: Body> Entry for Operation<Q, I, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn method(&self) -> Method {
        self.method
    }

    fn path(&self) -> &'static str {
        self.path
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn errors(&self) -> &'static [ErrorCode] {
        self.errors
    }

    fn right(&self) -> Right {
        self.right
    }
}

impl<Q: Query, I: Body, O: Body> Typed for Operation<Q, I, O> {
    fn query(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        Q::schema(generator)
    }

    fn request(&self, generator: &mut SchemaGenerator) -> (Option<&'static str>, Option<Schema>) {
        (I::MEDIA, I::schema(generator))
    }

    fn reply(&self, generator: &mut SchemaGenerator) -> (Option<&'static str>, Option<Schema>) {
        (O::MEDIA, O::schema(generator))
    }
}

macro_rules! operations {
    ($(
        $(#[doc = $summary:literal])+
        $constant:ident: $name:literal $method:ident $path:literal,
        $query:ty, $request:ty => $reply:ty, [$($error:ident)*], $right:ident;
    )*) => {
        $(
            $(#[doc = $summary])+
            pub const $constant: Operation<$query, $request, $reply> = Operation {
                name: $name,
                method: Method::$method,
                path: $path,
                summary: concat!($($summary),+).trim_ascii_start(),
                errors: &[$(ErrorCode::$error),*],
                right: Right::$right,
                types: PhantomData,
            };
        )*

        /// All operations.
        pub static TABLE: &[&dyn Entry] = &[$(&$constant),*];

        /// All operations with their types. A program that does not generate the document has none of this.
        pub(crate) static TYPED: &[&dyn Typed] = &[$(&$constant),*];
    };
}

operations! {
    /// Returns the daemon's version and the capabilities of its host.
    HOST: "host" Get "/v1/host",
        Nothing, Nothing => Json<HostStatus>, [], Read;
    /// Ends the daemon after its answer. Boxes and traffic go on, unless the request ends everything or the daemon has no
    /// store.
    STOP_DAEMON: "stop_daemon" Post "/v1/daemon/stop",
        StopQuery, Nothing => Json<StopReply>, [], Administer;
    /// Replaces the daemon by another program, which it starts after its answer. Boxes and traffic go on. If the program
    /// does not become ready, the daemon goes on.
    UPGRADE_DAEMON: "upgrade_daemon" Post "/v1/daemon/upgrade",
        Nothing, Json<Upgrade> => Json<UpgradeReply>, [Refused], Administer;
    /// Refuses new boxes and starts, and lists the boxes that still run. It lasts until it is ended, or the fabric is
    /// restarted.
    DRAIN_FABRIC: "drain_fabric" Put "/v1/fabric/drain",
        Nothing, Nothing => Json<DrainStatus>, [Busy Store], Administer;
    /// Takes new boxes and starts them again.
    UNDRAIN_FABRIC: "undrain_fabric" Delete "/v1/fabric/drain",
        Nothing, Nothing => Json<DrainStatus>, [Busy Store], Administer;
    /// Stops all boxes, ends the fabric, starts another one, and brings everything back from the store. If boxes run, it
    /// is restarted only by force.
    RESTART_FABRIC: "restart_fabric" Post "/v1/fabric/restart",
        RestartQuery, Nothing => Json<FabricRestart>, [Busy Store], Administer;
    /// Returns the OpenAPI document of this API.
    OPENAPI: "openapi" Get "/v1/openapi.json",
        Nothing, Nothing => Json<serde_json::Value>, [], Read;

    /// Uploads a file for a configuration. The size is checked before the body is read. The upload replaces one of the same
    /// name, and is removed when a request has installed it, after ten minutes without use, or when the daemon ends.
    UPLOAD: "upload" Put "/v1/uploads/{upload}",
        Nothing, Bytes => Nothing, [Busy TooLarge Limit Store Timeout], Create;
    /// Removes an upload.
    REMOVE_UPLOAD: "remove_upload" Delete "/v1/uploads/{upload}",
        Nothing, Nothing => Nothing, [NotFound Busy], Create;

    /// Returns an image that a box runs in place of the built-in one.
    IMAGE: "image" Get "/v1/images/{image}",
        Nothing, Nothing => Bytes, [NotFound Store Timeout], Read;

    /// Lists the boxes, by name.
    LIST_BOXES: "list_boxes" Get "/v1/boxes",
        Nothing, Nothing => Json<Vec<BoxStatus>>, [], Read;
    /// Creates a box and starts it.
    CREATE_BOX: "create_box" Post "/v1/boxes",
        Nothing, Json<CreateBox> => Json<BoxDetail>, [Exists NotFound Refused TooLarge Limit Store Timeout], Create;
    /// Returns all details of a box.
    SHOW_BOX: "show_box" Get "/v1/boxes/{box}",
        Nothing, Nothing => Json<BoxDetail>, [NotFound], Read;
    /// Removes a box with its configurations, log and files. A box that is not stopped is removed only by force.
    REMOVE_BOX: "remove_box" Delete "/v1/boxes/{box}",
        RemoveQuery, Nothing => Nothing, [NotFound Busy Store], Create;
    /// Starts a stopped box with its configurations.
    START_BOX: "start_box" Post "/v1/boxes/{box}/start",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Busy Limit Timeout], Operate;
    /// Stops a box gracefully. It stays stopped until it is started, regardless of its restart policy.
    STOP_BOX: "stop_box" Post "/v1/boxes/{box}/stop",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Busy Timeout], Operate;
    /// Suspends a box. It keeps its state; packets for it are dropped once its rings are full.
    SUSPEND_BOX: "suspend_box" Post "/v1/boxes/{box}/suspend",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Busy], Operate;
    /// Resumes a suspended box.
    RESUME_BOX: "resume_box" Post "/v1/boxes/{box}/resume",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Busy], Operate;
    /// Kills a box as if it had crashed. Its restart policy decides whether it starts again.
    KILL_BOX: "kill_box" Post "/v1/boxes/{box}/kill",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Busy], Operate;
    /// Stops a box and starts it again, with a fresh state.
    RESTART_BOX: "restart_box" Post "/v1/boxes/{box}/restart",
        Nothing, Nothing => Json<BoxStatus>, [NotFound Limit Timeout], Operate;
    /// Returns the console log of a box, oldest line first.
    LOGS: "logs" Get "/v1/boxes/{box}/logs",
        LogQuery, Nothing => Lines<LogLine>, [NotFound], Read;
    /// Returns the report of a box's last crash.
    CRASH: "crash" Get "/v1/boxes/{box}/crash",
        Nothing, Nothing => Json<CrashReport>, [NotFound], Read;

    /// Lists the files that a box has written, by name.
    FILES: "files" Get "/v1/boxes/{box}/files",
        Nothing, Nothing => Json<Vec<WrittenFile>>, [NotFound], Read;
    /// Returns the current contents of a file that a box writes.
    FILE: "file" Get "/v1/boxes/{box}/files/{file}",
        Nothing, Nothing => Bytes, [NotFound], Read;

    /// Returns the text of a configuration.
    SHOW_CONFIGURATION: "show_configuration" Get "/v1/boxes/{box}/configurations/{configuration}",
        Nothing, Nothing => Json<ConfigurationText>, [NotFound], Read;
    /// Installs a configuration. It replaces the one of the same name, whose state it takes over.
    INSTALL: "install" Put "/v1/boxes/{box}/configurations/{configuration}",
        Nothing, Json<Install> => Json<ConfigurationStatus>, [NotFound Refused Busy TooLarge Store Timeout Gone], Create;
    /// Removes a configuration. The one named `main` can only be replaced.
    REMOVE_CONFIGURATION: "remove_configuration" Delete "/v1/boxes/{box}/configurations/{configuration}",
        Nothing, Nothing => Nothing, [NotFound Busy Store Timeout Gone], Create;
    /// Makes writes to handlers part of the text of a configuration, as far as it can express them. For a box of a stack,
    /// only tells what the text would be.
    SAVE: "save" Post "/v1/boxes/{box}/configurations/{configuration}/save",
        Nothing, Json<Save> => Json<Saved>, [NotFound Refused Busy TooLarge Store Timeout Gone], Create;
    /// Checks a configuration without running it.
    CHECK: "check" Post "/v1/check",
        Nothing, Json<Check> => Json<CheckReply>, [TooLarge Limit Timeout], Create;

    /// Lists the handlers of a box, by configuration and element.
    LIST_HANDLERS: "list_handlers" Get "/v1/boxes/{box}/handlers",
        Nothing, Nothing => Json<Vec<HandlerInfo>>, [NotFound Busy Timeout Gone], Read;
    /// Reads a handler.
    READ: "read_handler" Get "/v1/boxes/{box}/handlers/{handler}",
        Nothing, Nothing => Json<HandlerValue>, [NotFound Refused Busy TooLarge Timeout Gone], Read;
    /// Reads a handler with an argument.
    ASK: "ask_handler" Post "/v1/boxes/{box}/handlers/{handler}",
        Nothing, Json<HandlerArgument> => Json<HandlerValue>, [NotFound Refused Busy TooLarge Timeout Gone], Read;
    /// Writes a handler.
    WRITE: "write_handler" Put "/v1/boxes/{box}/handlers/{handler}",
        Nothing, Json<HandlerWrite> => Nothing, [NotFound Refused Busy TooLarge Timeout Gone], Operate;

    /// Lists the switches, by name.
    LIST_SWITCHES: "list_switches" Get "/v1/switches",
        Nothing, Nothing => Json<Vec<SwitchStatus>>, [], Read;
    /// Creates a switch.
    CREATE_SWITCH: "create_switch" Post "/v1/switches",
        Nothing, Json<CreateSwitch> => Json<SwitchDetail>, [Exists NotFound Refused Limit Store], Create;
    /// Returns all details of a switch.
    SHOW_SWITCH: "show_switch" Get "/v1/switches/{switch}",
        Nothing, Nothing => Json<SwitchDetail>, [NotFound], Read;
    /// Removes a switch and its ports. If boxes or other switches are attached, it is removed only by force: boxes keep
    /// running, and are attached again when a switch of this name is created.
    REMOVE_SWITCH: "remove_switch" Delete "/v1/switches/{switch}",
        RemoveQuery, Nothing => Nothing, [NotFound Busy Store], Create;
    /// Lets the boxes and switches of another owner be attached to a switch.
    SHARE_SWITCH: "share_switch" Put "/v1/switches/{switch}/shares/{owner}",
        Nothing, Nothing => Json<SwitchDetail>, [NotFound Busy Store], Create;
    /// No longer lets the boxes and switches of another owner be attached to a switch. Those that are attached are detached:
    /// their ports lead nowhere, and boxes keep running.
    UNSHARE_SWITCH: "unshare_switch" Delete "/v1/switches/{switch}/shares/{owner}",
        Nothing, Nothing => Json<SwitchDetail>, [NotFound Busy Store], Create;
    /// Adds a port to a switch.
    ADD_PORT: "add_port" Post "/v1/switches/{switch}/ports",
        Nothing, Json<AddPort> => Json<SwitchPort>, [NotFound Exists Refused Limit Store], Create;
    /// Removes a port from a switch. A port that connects a box or another switch, or where a chain begins or ends, is removed only
    /// by force.
    REMOVE_PORT: "remove_port" Delete "/v1/switches/{switch}/ports/{port}",
        RemoveQuery, Nothing => Nothing, [NotFound Busy Store], Create;
    /// Lists the addresses that a switch knows.
    LIST_ADDRESSES: "list_addresses" Get "/v1/switches/{switch}/addresses",
        Nothing, Nothing => Json<Vec<AddressEntry>>, [NotFound], Read;
    /// Lists the flows of a steering switch, in the order of their numbers.
    LIST_FLOWS: "list_flows" Get "/v1/switches/{switch}/flows",
        Nothing, Nothing => Json<Vec<FlowStatus>>, [NotFound Refused], Read;
    /// Adds a flow to a steering switch.
    ADD_FLOW: "add_flow" Post "/v1/switches/{switch}/flows",
        Nothing, Json<AddFlow> => Json<FlowStatus>, [NotFound Refused Limit Store], Create;
    /// Removes a flow from a steering switch.
    REMOVE_FLOW: "remove_flow" Delete "/v1/switches/{switch}/flows/{flow}",
        Nothing, Nothing => Nothing, [NotFound Refused Store], Create;
    /// Lists the flow entries, groups and meters that OpenFlow controllers have added to a steering switch, page by page.
    LIST_CONTROLLER_ENTRIES: "list_controller_entries" Get "/v1/switches/{switch}/controller-entries",
        ControllerEntriesQuery, Nothing => Json<ControllerEntries>, [NotFound Refused], Read;
    /// Lists the services, by name.
    LIST_SERVICES: "list_services" Get "/v1/services",
        Nothing, Nothing => Json<Vec<ServiceStatus>>, [Busy], Read;
    /// Creates a service: boxes of one definition, which the packets of chains pass.
    CREATE_SERVICE: "create_service" Post "/v1/services",
        Nothing, Json<CreateService> => Json<ServiceStatus>, [Exists NotFound Refused Busy TooLarge Limit Store Timeout], Create;
    /// Returns the state of a service and of its instances.
    SHOW_SERVICE: "show_service" Get "/v1/services/{service}",
        Nothing, Nothing => Json<ServiceStatus>, [NotFound Busy], Read;
    /// Changes the number of instances of a service. Those that are too many get no new flows, and are removed when they
    /// have none left, or after a time.
    SCALE_SERVICE: "scale_service" Put "/v1/services/{service}/replicas",
        Nothing, Json<ScaleService> => Json<ServiceStatus>, [Exists NotFound Refused Busy Limit Store Timeout], Create;
    /// Replaces the configuration of all instances of a service, or of none.
    RELOAD_SERVICE: "reload_service" Put "/v1/services/{service}/configuration",
        Nothing, Json<Install> => Json<ServiceStatus>, [NotFound Refused Busy TooLarge Store Timeout Gone], Create;
    /// Removes a service with its instances. If chains lead through it, it is removed only by force, together with them.
    REMOVE_SERVICE: "remove_service" Delete "/v1/services/{service}",
        RemoveQuery, Nothing => Nothing, [NotFound Refused Busy Store], Create;
    /// Lists the chains, by switch and name.
    LIST_CHAINS: "list_chains" Get "/v1/chains",
        Nothing, Nothing => Json<Vec<ChainDetail>>, [Busy], Read;
    /// Creates a chain: a list of services that packets pass.
    CREATE_CHAIN: "create_chain" Post "/v1/chains",
        Nothing, Json<CreateChain> => Json<ChainDetail>, [Exists NotFound Refused Busy Store], Create;
    /// Returns the state of a chain, with the rates of each hop.
    SHOW_CHAIN: "show_chain" Get "/v1/switches/{switch}/chains/{chain}",
        Nothing, Nothing => Json<ChainDetail>, [NotFound Busy], Read;
    /// Changes a chain. Packets under way finish the previous one.
    SET_CHAIN: "set_chain" Put "/v1/switches/{switch}/chains/{chain}",
        Nothing, Json<CreateChain> => Json<ChainDetail>, [NotFound Refused Busy Store], Create;
    /// Removes a chain. If flows send packets to it, it is removed only by force.
    REMOVE_CHAIN: "remove_chain" Delete "/v1/switches/{switch}/chains/{chain}",
        RemoveQuery, Nothing => Nothing, [NotFound Refused Busy Store], Create;
    /// Assigns an address to a port of a static switch.
    SET_ADDRESS: "set_address" Put "/v1/switches/{switch}/addresses/{mac}",
        Nothing, Json<SetAddress> => Nothing, [NotFound Refused Limit Store], Create;
    /// Removes an address from a static switch.
    REMOVE_ADDRESS: "remove_address" Delete "/v1/switches/{switch}/addresses/{mac}",
        Nothing, Nothing => Nothing, [NotFound Refused Store], Create;

    /// Returns the accounts of the places through which packets pass: ports, switches, pipes, rings and boxes. Each number
    /// is measured on its own.
    ACCOUNT: "account" Get "/v1/account",
        AccountQuery, Nothing => Json<AccountReport>, [NotFound Timeout], Read;
    /// Captures the packets that pass a port. Traffic never waits: if the caller is too slow, packets are left out.
    CAPTURE: "capture" Get "/v1/capture",
        CaptureQuery, Nothing => Capture, [NotFound Limit], Operate;
    /// Returns the events of the daemon, oldest first.
    EVENTS: "events" Get "/v1/events",
        EventQuery, Nothing => Lines<Event>, [Limit], Read;

    /// Returns the audit log: requests that change something or that only administrators may make, oldest first.
    AUDIT: "audit" Get "/v1/audit",
        AuditQuery, Nothing => Lines<AuditEntry>, [], Administer;

    /// Lists the stacks, by name.
    LIST_STACKS: "list_stacks" Get "/v1/stacks",
        Nothing, Nothing => Json<Vec<StackStatus>>, [], Read;
    /// Returns what applying a stack would change.
    DIFF_STACK: "diff_stack" Post "/v1/stacks/{stack}/diff",
        Nothing, Json<Stack> => Json<Changes>, [Refused TooLarge Timeout], Read;
    /// Applies a stack as a whole or not at all: creates, changes and removes boxes and switches until they match its
    /// definition.
    APPLY_STACK: "apply_stack" Put "/v1/stacks/{stack}",
        ApplyQuery, Json<Stack> => Json<Changes>, [Exists NotFound Refused Busy TooLarge Limit Store Timeout], Create;
    /// Confirms a stack that was applied with a time limit, which keeps it.
    CONFIRM_STACK: "confirm_stack" Post "/v1/stacks/{stack}/confirm",
        Nothing, Nothing => Nothing, [Busy Store], Create;
    /// Rolls back a stack that awaits confirmation to its previous definition.
    ROLL_BACK_STACK: "roll_back_stack" Post "/v1/stacks/{stack}/rollback",
        Nothing, Nothing => Json<Changes>, [Exists NotFound Refused Busy Limit Store Timeout], Create;
    /// Returns the definition of a stack as it is now, with all configurations and files.
    EXPORT_STACK: "export_stack" Get "/v1/stacks/{stack}",
        Nothing, Nothing => Json<Stack>, [NotFound Store], Read;
    /// Removes a stack's boxes and switches. If others use its switches, they are removed only by force.
    REMOVE_STACK: "remove_stack" Delete "/v1/stacks/{stack}",
        RemoveQuery, Nothing => Json<Changes>, [NotFound Busy Store], Create;

    /// Checks the store's whole file, and lists the entries that were set aside.
    CHECK_STORE: "check_store" Get "/v1/store",
        Nothing, Nothing => Json<StoreStatus>, [Store], Administer;
    /// Returns a copy of the store with all acknowledged changes.
    BACK_STORE_UP: "back_store_up" Get "/v1/store/backup",
        Nothing, Nothing => Bytes, [Store], Administer;
    /// Restores an entry of the store that was set aside. If that fails, it stays aside.
    RETRY_SET_ASIDE: "retry_set_aside" Post "/v1/store/set-aside/{entry}/retry",
        Nothing, Nothing => Nothing, [NotFound Store], Administer;
    /// Deletes an entry of the store that was set aside.
    DROP_SET_ASIDE: "drop_set_aside" Delete "/v1/store/set-aside/{entry}",
        Nothing, Nothing => Nothing, [NotFound Store], Administer;

    /// Returns all counters in the formats of Prometheus.
    METRICS: "metrics" Get "/metrics",
        Nothing, Nothing => Metrics, [], Read;
}
