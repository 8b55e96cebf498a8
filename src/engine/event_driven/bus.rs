//! The shared memory bus between an NPU and its network adapter: two half-duplex ports with the times of LogGP, and behind the
//! NPU's port a second bus to its memory [ASTRA2].
//!
//! A message that is prepared makes a trip over the bus; one that is reduced is processed at the far port, and one that comes
//! back makes a second trip. Each request of the NPU's port first fetches from memory, and each arrival there stores.

use std::collections::VecDeque;

use super::clock::{Clock, Local};
use crate::system::machine::Bus;
use crate::units::{real, whole};

/// Nanoseconds of a byte on the bus to the memory, whatever the other bus takes.
const MEMORY_PER_BYTE: f64 = 0.0038;
/// Nanoseconds before anything is processed.
const PROCESSING_START: u64 = 50;
/// After so many sends a port lets the other one speak.
const TURN: u32 = 8;

/// A port: those of the bus to the adapter, then those of the bus to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// The NPU's.
    Npu = 0,
    /// The adapter's.
    Adapter = 1,
    /// The NPU's to the memory.
    Near = 2,
    /// The memory's.
    Memory = 3,
}

impl Port {
    const fn partner(self) -> Self {
        match self {
            Self::Npu => Self::Adapter,
            Self::Adapter => Self::Npu,
            Self::Near => Self::Memory,
            Self::Memory => Self::Near,
        }
    }
}

/// What a port does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Free,
    Sending,
    Receiving,
}

/// What follows a trip.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// The message is prepared.
    Prepared { chunk: u32, reduction: Option<u64> },
    /// A request may enter the NPU's port.
    Enter(Request),
    /// A request may be processed at the NPU's port.
    Process(Request),
    /// A request is over.
    Over(Message),
}

/// A message on its trip.
#[derive(Debug, Clone, Copy)]
struct Message {
    chunk: u32,
    reduction: Option<u64>,
}

/// What a port is asked to carry for a message.
#[derive(Debug, Clone, Copy)]
struct Request {
    bytes: u64,
    is_processed: bool,
    comes_back: bool,
    message: Message,
}

/// A request in a port's queue, with what follows it.
#[derive(Debug, Clone, Copy)]
struct Carried {
    bytes: u64,
    is_processed: bool,
    comes_back: bool,
    then: Then,
}

#[derive(Debug, Default)]
struct Side {
    state: State,
    before: State,
    last: u64,
    sent: u32,
    is_processing: bool,
    sends: VecDeque<Carried>,
    receives: VecDeque<Carried>,
    processed: VecDeque<Carried>,
}

/// The bus of one NPU.
#[derive(Debug, Default)]
pub struct Ports {
    sides: [Side; 4],
}

/// What a port tells its NPU when a trip is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The chunk whose message is prepared.
    pub chunk: u32,
    /// The reduction that follows, if one does.
    pub reduction: Option<u64>,
    /// Whether it was stored in the NPU's memory, whose port may then speak.
    pub is_stored: bool,
}

/// Where things happen: the clock, whose NPU, and its bus.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The clock.
    pub clock: &'a mut Clock,
    /// The NPU.
    pub npu: u32,
    /// The times.
    pub bus: Bus,
    /// Ticks of a nanosecond.
    pub tick: u64,
}

impl Ports {
    /// A message of a chunk is to be prepared over the bus.
    pub fn prepare(&mut self, scene: &mut Scene<'_>, bytes: u64, chunk: u32, reduction: Option<u64>, trip: Trip) {
        let message = Message { chunk, reduction };
        let request = Request { bytes, is_processed: reduction.is_some(), comes_back: trip.comes_back, message };
        if trip.is_outward {
            self.carry(scene, Port::Memory, bytes, false, Then::Enter(request));
        } else {
            self.enter(scene, Port::Adapter, request);
        }
    }

    fn enter(&mut self, scene: &mut Scene<'_>, port: Port, request: Request) {
        let Request { bytes, is_processed, comes_back, message: Message { chunk, reduction } } = request;
        let then = Then::Prepared { chunk, reduction };
        self.sides[port as usize].sends.push_back(Carried { bytes, is_processed, comes_back, then });
        self.speak(scene, port);
    }

    /// A trip over the bus to the memory.
    fn carry(&mut self, scene: &mut Scene<'_>, port: Port, bytes: u64, comes_back: bool, then: Then) {
        self.sides[port as usize].sends.push_back(Carried { bytes, is_processed: false, comes_back, then });
        self.speak(scene, port);
    }

    /// A port sends if it may.
    fn speak(&mut self, scene: &mut Scene<'_>, port: Port) {
        let (own, other) = (&self.sides[port as usize], &self.sides[port.partner() as usize]);
        if own.state != State::Free || own.sends.is_empty() {
            return;
        }
        if own.sent > TURN && !other.sends.is_empty() && other.sent <= TURN {
            if other.state == State::Free {
                self.speak(scene, port.partner());
            }
            return;
        }
        self.send(scene, port);
    }

    fn send(&mut self, scene: &mut Scene<'_>, port: Port) {
        let Bus { latency, overhead, gap, per_byte, .. } = scene.bus;
        let now = scene.clock.now();
        let per_byte = if matches!(port, Port::Npu | Port::Adapter) { per_byte } else { MEMORY_PER_BYTE };
        let own = &mut self.sides[port as usize];
        let since = (now - own.last) / scene.tick;
        let start = if own.before == State::Sending && overhead + since <= gap { gap - since } else { overhead };
        let Some(carried) = own.sends.pop_front() else { return };
        own.state = State::Sending;
        let bytes = real(carried.bytes.saturating_sub(1)) * per_byte;
        let other = &mut self.sides[port.partner() as usize];
        other.receives.push_back(carried);
        other.before = other.state;
        other.state = State::Receiving;
        other.sent = 0;
        let arrives = whole(real(start) + bytes + real(latency) + real(overhead));
        scene.clock.local(scene.npu, arrives * scene.tick, Local::BusReceived { port: port.partner() });
        scene.clock.local(scene.npu, whole(real(start) + bytes) * scene.tick, Local::BusSent { port });
    }

    /// A port has sent.
    pub fn sent(&mut self, scene: &mut Scene<'_>, port: Port) {
        let own = &mut self.sides[port as usize];
        own.last = scene.clock.now();
        own.before = own.state;
        own.state = State::Free;
        own.sent += 1;
        self.speak(scene, port);
    }

    /// A port has received: what is prepared by that.
    pub fn received(&mut self, scene: &mut Scene<'_>, port: Port) -> Option<Prepared> {
        let own = &mut self.sides[port as usize];
        own.last = scene.clock.now();
        own.before = own.state;
        if own.receives.len() < 2 {
            own.state = State::Free;
        }
        let mut carried = own.receives.pop_front()?;
        if carried.is_processed {
            carried.is_processed = false;
            match (port, request(carried)) {
                (Port::Npu, Some(request)) => {
                    self.carry(scene, Port::Near, carried.bytes, true, Then::Process(request));
                }
                _ => self.sides[port as usize].processed.push_back(carried),
            }
            self.process(scene, port);
            None
        } else if carried.comes_back {
            self.back(scene, port, carried);
            None
        } else {
            self.over(scene, port, carried)
        }
    }

    /// A port goes on, once what it has prepared has been seen to.
    pub fn go_on(&mut self, scene: &mut Scene<'_>, port: Port) {
        self.process(scene, port);
        self.speak(scene, port);
    }

    /// A request comes back over the port at which it is.
    fn back(&mut self, scene: &mut Scene<'_>, port: Port, mut carried: Carried) {
        carried.comes_back = false;
        match (port, request(carried)) {
            (Port::Npu, Some(request)) => self.carry(scene, Port::Near, carried.bytes, true, Then::Enter(request)),
            _ => self.sides[port as usize].sends.push_back(carried),
        }
    }

    /// A request is over: at the NPU it is stored first.
    fn over(&mut self, scene: &mut Scene<'_>, port: Port, carried: Carried) -> Option<Prepared> {
        match (port, carried.then) {
            (Port::Npu, Then::Prepared { chunk, reduction }) => {
                self.carry(scene, Port::Near, carried.bytes, false, Then::Over(Message { chunk, reduction }));
                None
            }
            (_, Then::Prepared { chunk, reduction }) => Some(Prepared { chunk, reduction, is_stored: false }),
            (_, Then::Enter(request)) => {
                self.enter(scene, Port::Npu, request);
                None
            }
            (_, Then::Process(request)) => {
                let Request { bytes, is_processed, comes_back, message: Message { chunk, reduction } } = request;
                let then = Then::Prepared { chunk, reduction };
                self.sides[Port::Npu as usize].processed.push_back(Carried { bytes, is_processed, comes_back, then });
                self.process(scene, Port::Npu);
                self.speak(scene, Port::Npu);
                None
            }
            (_, Then::Over(Message { chunk, reduction })) => Some(Prepared { chunk, reduction, is_stored: true }),
        }
    }

    /// The next request is processed, if none is.
    fn process(&mut self, scene: &mut Scene<'_>, port: Port) {
        let own = &mut self.sides[port as usize];
        if let Some(first) = own.processed.front().filter(|_| !own.is_processing) {
            let delay = first.bytes / 100 * scene.bus.processing + PROCESSING_START;
            own.is_processing = true;
            scene.clock.local(scene.npu, delay * scene.tick, Local::BusProcessed { port });
        }
    }

    /// A request is processed: what is prepared by that.
    pub fn processed(&mut self, scene: &mut Scene<'_>, port: Port) -> Option<Prepared> {
        let own = &mut self.sides[port as usize];
        own.is_processing = false;
        let carried = own.processed.pop_front()?;
        if carried.comes_back {
            self.back(scene, port, carried);
            None
        } else {
            self.over(scene, port, carried)
        }
    }
}

/// How a message goes over the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// From the NPU to the adapter, or the other way.
    pub is_outward: bool,
    /// Whether it comes back.
    pub comes_back: bool,
}

/// The request that a carried message is.
const fn request(carried: Carried) -> Option<Request> {
    let Then::Prepared { chunk, reduction } = carried.then else { return None };
    let Carried { bytes, is_processed, comes_back, .. } = carried;
    Some(Request { bytes, is_processed, comes_back, message: Message { chunk, reduction } })
}
