//! The list itself. New reasons go to its end.

use crate::Reason;

impl Reason {
    /// All reasons on the list, in its order.
    pub fn all() -> impl ExactSizeIterator<Item = Reason> {
        (0..NAMES.len() as u16).map(Reason)
    }

    /// The reason on the list with this name.
    pub fn find(name: &str) -> Option<Reason> {
        NAMES.iter().position(|known| *known == name).map(|index| Reason(index as u16))
    }

    /// Its name; that of [`Reason::UNDECLARED`] for a user function's reason, whose name only its router knows.
    pub fn name(self) -> &'static str {
        self.of(&NAMES)
    }

    /// What it means, in a sentence.
    pub fn summary(self) -> &'static str {
        self.of(&SUMMARIES)
    }

    /// What an operator can do about it, in a sentence or two.
    pub fn remedy(self) -> &'static str {
        self.of(&REMEDIES)
    }

    fn of(self, texts: &'static [&'static str]) -> &'static str {
        texts.get(usize::from(self.0)).or(texts.first()).copied().unwrap_or_default()
    }
}

/// Reasons for which the framework drops packets on behalf of any element. No class declares them.
pub const FRAMEWORK: &[Reason] = &[
    Reason::NO_BUFFER,
    Reason::NO_OUTPUT,
    Reason::NO_PUSH,
    Reason::REENTERED,
    Reason::ENDLESS_LOOP,
    Reason::REMOVED,
];

/// Declares the reasons: a constant of [`Reason`] for each, and the tables of their texts, apart, so that a box image
/// has only the names.
macro_rules! reasons {
    ($($constant:ident $name:literal: $summary:literal, $remedy:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the constants below")]
        enum Index {
            $($constant),*
        }

        impl Reason {
            $(
                #[doc = $summary]
                pub const $constant: Reason = Reason(Index::$constant as u16);
            )*
        }

        static NAMES: [&str; [$($name),*].len()] = [$($name),*];
        static SUMMARIES: [&str; NAMES.len()] = [$($summary),*];
        static REMEDIES: [&str; NAMES.len()] = [$($remedy),*];
    };
}

reasons! {
    UNDECLARED "undeclared":
        "An element dropped the packet for a reason that its class does not declare.",
        "Report it as a bug of the element.";
    NO_BUFFER "no_buffer":
        "The packet pool was exhausted.",
        "Allow more packets, or shorten the queues that hold them.";
    NO_OUTPUT "no_output":
        "The packet was for an output that does not exist or is not connected.",
        "Connect the output; connect `Discard` to it if the loss is intended.";
    NO_PUSH "no_push":
        "The packet was pushed to an element that can only be pulled.",
        "Report it as a bug of the element.";
    REENTERED "reentered":
        "The packet came back to an element before that element's call had returned.",
        "Put a `Queue` into the loop.";
    ENDLESS_LOOP "endless_loop":
        "The packet went around a loop that has no end.",
        "Break the loop, or decrement the TTL in it.";
    TOO_SHORT "too_short":
        "The packet ends before the header or field that the element needs.",
        "Check the headers before this element, and look for truncated captures.";
    TOO_LONG "too_long":
        "The packet is longer than its length field, the element's limit or a packet buffer allows.",
        "Send shorter packets, fragment them, or raise the limit.";
    BAD_VERSION "bad_version":
        "The IP header has a version that the element does not handle.",
        "Separate IPv4 and IPv6 with a `Classifier` before this element.";
    BAD_HEADER_LENGTH "bad_header_length":
        "The header's length field is smaller than the fixed header or larger than the packet.",
        "The sender is broken or hostile; nothing to do here.";
    BAD_LENGTH "bad_length":
        "The header's length field does not fit the packet.",
        "The sender is broken or hostile, or a capture is truncated.";
    BAD_CHECKSUM "bad_checksum":
        "The checksum is wrong.",
        "Look for damaged links; a sender with checksum offload may not have filled it in yet.";
    BAD_SOURCE "bad_source":
        "The source address is not valid for any sender.",
        "The sender is broken or spoofs addresses; nothing to do here.";
    BAD_HARDWARE "bad_hardware":
        "The hardware type or address length in the ARP header is not that of Ethernet.",
        "The sender is broken; nothing to do here.";
    BAD_PROTOCOL "bad_protocol":
        "The protocol type or address length in the ARP header is not that of IPv4.",
        "The sender is broken; nothing to do here.";
    BAD_CRC "bad_crc":
        "The packet's CRC-32 is wrong or missing.",
        "Look for damaged links, and for senders that do not append a CRC.";
    BAD_OPTION "bad_option":
        "An IP option is malformed or cannot be processed.",
        "Send such packets to an `ICMPError` from the second output.";
    BAD_FRAGMENT "bad_fragment":
        "The fragment is malformed, or contradicts others of its packet.",
        "The sender is broken or hostile; nothing to do here.";
    NO_IP_HEADER "no_ip_header":
        "The packet has no IP header where the element expects one.",
        "Put `CheckIPHeader`, `MarkIPHeader` or a `Classifier` before this element.";
    NO_NETWORK_HEADER "no_network_header":
        "The packet has no network header annotation.",
        "Put `CheckIPHeader` or `MarkIPHeader` before this element.";
    NOT_ICMP "not_icmp":
        "The packet is not ICMP.",
        "Separate ICMP with an `IPClassifier` before this element.";
    NOT_TCP "not_tcp":
        "The packet is not TCP.",
        "Separate TCP with an `IPClassifier` before this element.";
    NOT_UDP "not_udp":
        "The packet is not UDP.",
        "Separate UDP with an `IPClassifier` before this element.";
    NO_TAG "no_tag":
        "The packet has no VLAN tag.",
        "Connect the second output to handle untagged packets.";
    NO_FIELD "no_field":
        "The packet does not contain the field that the element reads.",
        "Separate such packets before this element.";
    NO_FLOW "no_flow":
        "The packet belongs to no flow: it is neither TCP nor UDP, or a fragment that cannot be matched.",
        "Connect the second output to handle such packets.";
    DONT_FRAGMENT "dont_fragment":
        "The packet is longer than the MTU and must not be fragmented.",
        "Send such packets to an `ICMPError` from the second output, so that senders learn the MTU.";
    TTL_EXPIRED "ttl_expired":
        "The packet's TTL or hop limit has run out.",
        "Look for routing loops; send such packets to an `ICMPError` from the second output.";
    NOT_CAPABLE "not_capable":
        "The packet's transport does not support ECN, so it cannot be marked.",
        "Set FORCE to mark such packets anyway.";
    EXCEEDS_MTU "exceeds_mtu":
        "The packet is longer than the device's MTU.",
        "Put an `IPFragmenter` before the device, or raise its MTU.";
    DENIED "denied":
        "A rule of the filter denies the packet.",
        "Nothing to do if the rule is as intended.";
    NO_MATCH "no_match":
        "No pattern of the classifier matches the packet.",
        "Add a last pattern `-` to handle all other packets.";
    BROADCAST "broadcast":
        "The packet is a link-level or IP broadcast or multicast.",
        "Nothing to do if that is intended.";
    WRONG_PAINT "wrong_paint":
        "The packet's paint annotation differs from the one that the element passes.",
        "Nothing to do if that is intended.";
    OUTSIDE_TIME "outside_time":
        "The packet's timestamp lies outside the interval.",
        "Nothing to do if the interval is as intended.";
    NOT_SAMPLED "not_sampled":
        "The packet is not part of the random sample.",
        "Nothing to do: sampling is the element's purpose.";
    OTHER_HOST "other_host":
        "The frame is for another host.",
        "Nothing to do if that is intended.";
    OWN_SOURCE "own_source":
        "The frame has the host's own source address.",
        "Look for loops between switches.";
    OTHER_PROTOCOL "other_protocol":
        "The frame's protocol is not one that the device passes on.",
        "Nothing to do if that is intended.";
    SUPPRESSED "suppressed":
        "The port is suppressed.",
        "Write 1 to the port's `active` handler.";
    SWITCHED_OFF "switched_off":
        "The switch element is set to pass nothing.",
        "Write another value to its `switch` handler.";
    NO_OTHER_PORT "no_other_port":
        "There is no other port to send the packet to.",
        "Connect further ports.";
    SAME_PORT "same_port":
        "The destination is behind the port that the frame came from.",
        "Nothing to do: the frame needs no forwarding.";
    NO_TICKETS "no_tickets":
        "No output has tickets.",
        "Give an output a positive number of tickets.";
    NO_ROUTE "no_route":
        "No route leads to the packet's destination, or in a switch, no port.",
        "Add a route, or a default route; in a switch, the port that its flow or its controller names.";
    OVERFLOW "overflow":
        "A queue was full.",
        "Pull faster, make the queue longer, or shape the traffic before it.";
    EARLY_DROP "early_drop":
        "Active queue management dropped the packet before the queue was full.",
        "Nothing to do: the drop tells the sender to slow down.";
    LATE "late":
        "The packet had waited in the queue for too long.",
        "Nothing to do: the drop tells the sender to slow down.";
    OVER_RATE "over_rate":
        "The traffic exceeded the configured rate.",
        "Raise the rate, or connect the second output.";
    RESET "reset":
        "The packet was in a queue that was emptied.",
        "Nothing to do: this was requested.";
    NO_ANSWER "no_answer":
        "The next hop did not answer address queries in time.",
        "Check that the next hop is up and on this network.";
    UNKNOWN_TARGET "unknown_target":
        "The query asks for an address that the element does not answer for.",
        "Connect the second output to handle such queries.";
    TABLE_FULL "table_full":
        "The address table was full.",
        "Raise the table's limit.";
    TABLE_CLEARED "table_cleared":
        "The address table was cleared while the packet waited for an answer.",
        "Nothing to do: this was requested.";
    NO_OWN_ADDRESS "no_own_address":
        "The element has no address of its own to send queries from.",
        "Set the element's addresses.";
    NO_DESTINATION "no_destination":
        "The packet has no destination annotation.",
        "Put `GetIPAddress` or a route lookup before this element.";
    REPLACED "replaced":
        "A newer packet to the same destination took its place while it waited for an answer.",
        "Check that the next hop answers queries.";
    NO_SOLICITATION "no_solicitation":
        "The packet is not a neighbour solicitation.",
        "Separate solicitations with a `Classifier` before this element.";
    IS_ERROR "is_error":
        "The packet is itself an ICMP error, to which no error may be sent.",
        "Nothing to do: RFC 1122 forbids a reply.";
    IS_FRAGMENT "is_fragment":
        "The packet is a fragment that cannot be handled by itself.",
        "Put an `IPReassembler` before this element.";
    IS_ROUTED "is_routed":
        "The packet is source-routed, to which no redirect may be sent.",
        "Nothing to do: RFC 1812 forbids a reply.";
    NO_ECHO "no_echo":
        "The packet is not an ICMP echo request.",
        "Connect the second output to handle such packets.";
    NO_MAPPING "no_mapping":
        "The packet belongs to no flow of the rewriter, and its input may not begin one.",
        "Nothing to do if unsolicited packets are to be dropped.";
    NO_FREE_MAPPING "no_free_mapping":
        "The pattern has no free address or port left.",
        "Give the pattern more ports or addresses.";
    BAD_PATTERN "bad_pattern":
        "The pattern changes a field that packets of this protocol do not have.",
        "Use a pattern that changes addresses only.";
    NOT_REWRITABLE "not_rewritable":
        "The rewriter cannot change packets of this protocol, or fragments.",
        "Separate such packets before this element.";
    TOO_MANY_FLOWS "too_many_flows":
        "The flow table was full.",
        "Raise the table's capacity, or shorten its timeouts.";
    LOST_FRAGMENT "lost_fragment":
        "The first fragment of the packet never arrived.",
        "Look for losses before this element.";
    TOO_MANY_FRAGMENTS "too_many_fragments":
        "Too many fragments were waiting for their first one.",
        "Put an `IPReassembler` before this element.";
    TIMED_OUT "timed_out":
        "The other fragments of the packet did not arrive in time.",
        "Look for losses before this element.";
    NO_MEMORY "no_memory":
        "The memory for incomplete packets was exhausted.",
        "Raise the element's memory limit.";
    NOT_SENT "not_sent":
        "The operating system or device refused the packet.",
        "Check that the interface is up, and that the other end of the socket exists.";
    NOT_CONNECTED "not_connected":
        "The socket has no peer.",
        "Connect the other end.";
    CLOSED "closed":
        "The device is closed.",
        "Check why it could not be opened or has failed.";
    FULL "full":
        "The device, socket or port had no room for the packet.",
        "Receive faster at the other end, or shape the traffic.";
    SCRIPT "script":
        "The script dropped the packet.",
        "Nothing to do if the script is as intended.";
    SPOOFED "spoofed":
        "The frame claims an address of a sender that its port may not use, or that is assigned to another port.",
        "Let the box use the addresses of its port, or allow others on it: `bind_ip`, `source`, `transparent`.";
    CAPPED "capped":
        "The port exceeded its limit of frames, bits or new addresses per second.",
        "Raise the port's limit.";
    FAULTY "faulty":
        "The other side of the port wrote an invalid descriptor.",
        "The box or peer there is broken or hostile; restart it and check its program.";
    DOWN "down":
        "The destination port is gone, or its device or peer is down or disconnected.",
        "See in `clickbox port ls` what is missing. Start the box or peer, or set the interface up.";
    MISSED "missed":
        "The frame arrived faster than the switch could read from the device.",
        "Give the switch another core, or slow the sender down.";
    BOX_ENDED "box_ended":
        "The packet was in the box or its rings when the box ended.",
        "Nothing to do if the box was stopped; else see its crash report.";
    IN_ENDED_BOX "in_ended_box":
        "The packet was inside the box, in none of its rings, when the box ended.",
        "Nothing to do if the box was stopped; else see its crash report.";
    REMOVED "removed":
        "The packet waited where a change of the configuration left no room for it.",
        "Nothing to do: this was requested.";
    BROADCASTS_CAPPED "broadcasts_capped":
        "The port exceeded its limit of broadcasts and multicasts.",
        "Look for a loop or a host that scans, or raise the port's limit.";
    FLOW_MISS "flow_miss":
        "The frame matches no flow of the steering switch.",
        "Add a flow for it, or one of low priority that forwards the rest by learned addresses.";
    FLOW_DROP "flow_drop":
        "A flow of the steering switch drops the frame.",
        "Nothing to do if the flow is as intended.";
    CONTROLLER_FULL "controller_full":
        "Too many frames wait for the controllers, or none is connected.",
        "Have the controller add flows, so that fewer frames come to it.";
    NO_INSTANCE "no_instance":
        "The service that the frame had to pass has no instance that runs.",
        "Start instances of the service, or raise their number; see `clickbox show service/NAME`.";
    FUNCTION_DROP "function_drop":
        "A function answered that the frame should be dropped.",
        "Nothing to do if the function is as intended.";
    CONGESTED "congested":
        "A service of the frame's chain had too many frames waiting, so the frame was dropped before it entered the chain.",
        "Raise the number of instances of the slowest service, or the number of slots of their rings.";
    OUT_OF_RANGE "out_of_range":
        "A translator sent the frame from an address and port outside of its range.",
        "Use $TRANSLATE_ADDRESS and $TRANSLATE_PORTS in the configuration, or declare a static mapping.";
    FLOW_TAKEN "flow_taken":
        "A translator sent the frame with the addresses and ports of a flow of another instance.",
        "Have the configuration translate only what it receives, or look for a hostile instance.";
    WASM_FUEL "wasm_fuel":
        "A function in WebAssembly executed more instructions for the packet than it may.",
        "Raise FUEL of the element Wasm if the function is right; else look for an endless loop in it.";
    WASM_TRAP "wasm_trap":
        "A function in WebAssembly failed while it processed the packet.",
        "Read the element's handler last_failure, and correct the function.";
    WASM_MEMORY "wasm_memory":
        "A function in WebAssembly asked for more memory than it may have.",
        "Raise MEMORY of the element Wasm, or let the function forget what it no longer needs.";
    HANDOVER_FULL "handover_full":
        "Too many frames waited while the state of their flows was handed over to another instance.",
        "Scale services in when there is less traffic.";
    THREAD_FULL "thread_full":
        "Another switch thread had no room for the frame, which belongs to one of its flows or ports.",
        "Use more switch threads, or give them processors that nothing else uses.";
    BAD_TUNNEL_HEADER "bad_tunnel_header":
        "A packet of the tunnel's remote end has a malformed header, or carries no Ethernet frame.",
        "The remote end is broken or hostile, or uses an extension that is not supported.";
    CRITICAL_OPTION "critical_option":
        "A GENEVE packet has an option that the receiver must understand, and does not.",
        "Have the remote end send no critical options.";
    TUNNEL_CONTROL "tunnel_control":
        "A GENEVE packet is a control message and carries no frame for the network.",
        "Nothing to do; disable control messages at the remote end if there are many.";
    CONGESTION_MARK "congestion_mark":
        "A router on the path marked congestion, and the frame in the tunnel cannot carry the mark (RFC 6040).",
        "Send less through the tunnel, or enable ECN at the senders.";
    TOO_BIG "too_big":
        "The frame is longer than the MTU of its port's device or tunnel.",
        "Lower the MTU of the senders, or raise that of the device or of the interfaces that the tunnel passes.";
    UNMAPPED_ADDRESS "unmapped_address":
        "An address of the IPv6 packet stands for no IPv4 address.",
        "Give the translator the PREFIX of the addresses, or translate these with an AddressTranslator first.";
    METER_DROP "meter_drop":
        "The frame exceeded the rate of a meter that a controller added to the steering switch.",
        "Send less, or have the controller raise the rate of the meter's band.";
    PORT_CONFIG "port_config":
        "An OpenFlow controller has configured a port of the steering switch so that it does not receive or send the frame, or report it.",
        "Have the controller clear the configuration of the port, or remove the port and add it again.";
    UNKNOWN_SPI "unknown_spi":
        "No security association has the number (SPI) that the ESP packet states.",
        "Compare the SPIs, and the routes with keys, at both ends of the tunnel.";
    SEQUENCE_ENDED "sequence_ended":
        "The sequence numbers of the security association are used up; none is used again.",
        "Give the tunnel a route with another SPI and new keys, at both ends.";
    BAD_DIGEST "bad_digest":
        "The packet's digest is wrong: it was changed, or comes from a sender without the key.",
        "Compare the authentication keys at both ends of the tunnel; otherwise the sender is hostile.";
    REPLAYED "replayed":
        "The sequence number of the packet was taken before, or is too old to tell.",
        "Look for duplicated or delayed packets; a sender that restarts needs a higher REPLAY or new keys.";
    BAD_PADDING "bad_padding":
        "The padding of the decrypted packet is wrong.",
        "Compare the encryption keys, and the order of encryption and authentication, at both ends of the tunnel.";
    OUTSIDE_TUNNEL "outside_tunnel":
        "The packet came through a tunnel, and its source address is not routed to that tunnel.",
        "Add a route for the source to the tunnel; otherwise the sender is hostile.";
}
