//! The event-driven engine: every message of every rank, in the order in which the reference simulator takes them.
//!
//! One rank's part of a collective is cut into chunks; a chunk goes through phases, one in each dimension; a phase is a small
//! machine (`token`, `tree`) that sends and receives over the `wire`. The `clock` says what comes next.

pub mod bus;
mod chunk;
mod clock;
pub mod machine;
pub mod order;
pub mod program;
mod token;
mod tree;
mod wire;

use clock::{Clock, Event, Local};
pub use machine::Machine;
use order::Themis;
pub use program::{Kind, Operation};
use thiserror::Error;
use wire::{Address, Then, Waiting, Wire};

use crate::units::narrow;
use chunk::{Chunks, Npu};

/// Tags of collectives, and of questions before a rendezvous, begin here.
const TAGS: u64 = 500_000_000;
/// How many bytes a receiver's question has.
const QUESTION: u64 = 8192;

/// What came of a simulation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// When each rank was done, in nanoseconds; none if it waits for ever.
    pub finish: Vec<Option<u64>>,
    /// How long each rank computed.
    pub compute: Vec<u64>,
    /// How many messages were sent.
    pub messages: u64,
    /// Operations that wait for ever, by rank and number: none unless there is a deadlock.
    pub stuck: Vec<Stuck>,
}

/// An operation that waits for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck {
    /// Its rank.
    pub rank: u32,
    /// Its number.
    pub operation: u64,
    /// What it waits for.
    pub wait: Wait,
}

/// What an operation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It has begun, and other ranks do not do their part.
    Others,
    /// It has not begun: an operation of its rank holds the slot that it needs.
    Slot,
    /// It has not begun: so many operations of its rank that it depends on do not end.
    Operations(u32),
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// An operation waits for one that is not there.
    #[error("operation {operation} of rank {rank} waits for operation {missing}, which is not there")]
    Dangling {
        /// The rank.
        rank: u32,
        /// The operation.
        operation: u64,
        /// What it waits for.
        missing: u64,
    },
    /// A collective has no bytes for any chunk.
    #[error("a collective of {bytes} bytes cannot be cut into {chunks} chunks")]
    TooSmall {
        /// Its bytes.
        bytes: u64,
        /// Chunks.
        chunks: u64,
    },
    /// The machine, or what it is given to do, contradicts itself.
    #[error("{0}")]
    Impossible(&'static str),
    /// A rank takes part in a group that it is not in, or talks to a rank that is not there.
    #[error("operation {operation} of rank {rank} names {what}")]
    Stranger {
        /// The rank.
        rank: u32,
        /// The operation.
        operation: u64,
        /// What is not there.
        what: &'static str,
    },
    /// An algorithm needs a power of two.
    #[error("a double binary tree takes a power of two, not {members}")]
    NoPower {
        /// How many there are.
        members: u32,
    },
}

/// One rank's program under way.
#[derive(Debug, Default)]
struct Run {
    /// By number.
    operations: Vec<Operation>,
    /// How many operations each waits for.
    waits: Vec<u32>,
    /// Who waits for each.
    followers: Vec<Vec<u32>>,
    /// Operations that could start, ascending.
    ready: Vec<u32>,
    ongoing: Vec<u32>,
    is_computing: bool,
    is_communicating: bool,
    computed: u64,
    finish: Option<u64>,
}

/// A simulation under way.
#[derive(Debug)]
struct Simulation<'a> {
    machine: &'a Machine,
    clock: Clock,
    wire: Wire,
    npus: Vec<Npu>,
    chunks: Chunks,
    themis: Themis,
    runs: Vec<Run>,
    refused: Option<Refused>,
}

/// Simulates the programs of all ranks.
///
/// # Errors
/// If a program cannot be run at all. A deadlock is no error: the ranks that wait for ever have no finish.
pub fn simulate(machine: &Machine, programs: &[Vec<Operation>]) -> Result<Outcome, Refused> {
    let npus = machine.npus();
    machine.check()?;
    if programs.len() != npus as usize {
        return Err(Refused::Impossible("there is not one program for each rank"));
    }
    let runs = programs.iter().zip(0..).map(|(program, rank)| Run::new(machine, rank, program));
    let runs = runs.collect::<Result<_, _>>()?;
    let mut simulation = Simulation {
        machine,
        clock: Clock::new(npus),
        wire: Wire::default(),
        npus: (0..npus).map(|_| Npu::new(machine)).collect(),
        chunks: Chunks::default(),
        themis: Themis::default(),
        runs,
        refused: None,
    };
    for rank in 0..npus {
        simulation.issue(rank);
        simulation.look_for_end(rank);
    }
    while let (Some(event), None) = (simulation.clock.next(), &simulation.refused) {
        simulation.happen(event);
    }
    match simulation.refused {
        Some(refused) => Err(refused),
        None => Ok(Outcome {
            finish: simulation.runs.iter().map(|run| run.finish).collect(),
            compute: simulation.runs.iter().map(|run| run.computed).collect(),
            messages: simulation.wire.sent,
            stuck: simulation.runs.iter().zip(0..).flat_map(|(run, rank)| run.stuck(rank)).collect(),
        }),
    }
}

impl Run {
    fn new(machine: &Machine, rank: u32, program: &[Operation]) -> Result<Self, Refused> {
        if let Some((operation, what)) = program.iter().find_map(|it| Some((it.id, it.kind.stranger(machine, rank)?))) {
            return Err(Refused::Stranger { rank, operation, what });
        }
        let mut operations = program.to_vec();
        operations.sort_by_key(|operation| operation.id);
        let mut followers = vec![Vec::new(); operations.len()];
        let mut waits = vec![0; operations.len()];
        for (k, operation) in operations.iter().enumerate() {
            let mut after = operation.after.clone();
            after.sort_unstable();
            after.dedup();
            for missing in after {
                let Ok(first) = operations.binary_search_by_key(&missing, |operation| operation.id) else {
                    return Err(Refused::Dangling { rank, operation: operation.id, missing });
                };
                followers[first].push(narrow(k as u64));
                waits[k] += 1;
            }
        }
        let ready = (0..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(k, _)| k).collect();
        Ok(Self { operations, waits, followers, ready, ..Self::default() })
    }
}

impl Run {
    /// The operations that wait for ever, once nothing happens any more.
    fn stuck(&self, rank: u32) -> impl Iterator<Item = Stuck> {
        let wait = |k: u32| match (self.ongoing.contains(&k), self.ready.contains(&k), self.waits[k as usize]) {
            (true, ..) => Some(Wait::Others),
            (_, true, _) => Some(Wait::Slot),
            (_, _, 0) => None,
            (_, _, open) => Some(Wait::Operations(open)),
        };
        let operations = self.operations.iter().zip(0..);
        operations.filter_map(move |(operation, k)| Some(Stuck { rank, operation: operation.id, wait: wait(k)? }))
    }
}

impl Simulation<'_> {
    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { message } => {
                if let Some((sent, received)) = self.wire.arrive(self.machine, &mut self.clock, message) {
                    self.then(sent);
                    if let Some(received) = received {
                        self.then(received);
                    }
                }
            }
            Event::Late { message } => {
                if let Some(then) = self.wire.late(message) {
                    self.then(then);
                }
            }
            Event::Free { link } => self.wire.link_is_free(self.machine, &mut self.clock, link),
            Event::Block { npu, block } => {
                let mut k = 0;
                while let Some(local) = self.clock.of_block(npu, block, k) {
                    k += 1;
                    match local {
                        Local::Prepared { chunk, reduction: Some(delay) } => {
                            self.clock.local(npu, delay, Local::Reduced { chunk });
                        }
                        Local::Prepared { chunk, reduction: None } | Local::Reduced { chunk } => self.prepared(chunk),
                        Local::Done { operation } => self.done(npu, operation),
                        happened @ (Local::BusSent { .. } | Local::BusReceived { .. } | Local::BusProcessed { .. }) => {
                            self.bus(npu, happened);
                        }
                    }
                }
            }
        }
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Received { chunk } => self.received(chunk),
            Then::Done { npu, operation } => self.done(npu, operation),
            Then::Send { waiting } => {
                let Waiting { address, then } = self.wire.waiting[waiting as usize];
                self.wire.send(self.machine, &mut self.clock, address, then);
            }
            Then::Receive { waiting } => {
                let Waiting { address, then } = self.wire.waiting[waiting as usize];
                self.wire.receive(&mut self.clock, address, then);
            }
        }
    }

    /// Sends a message, after its receiver has asked for it if there is a rendezvous.
    fn send(&mut self, address: Address, then: Then) {
        if self.machine.rendezvous {
            let waiting = self.wait(address, then);
            let question = question(address);
            self.wire.receive(&mut self.clock, question, Then::Send { waiting });
        } else {
            self.wire.send(self.machine, &mut self.clock, address, then);
        }
    }

    /// Posts a receive, asking the sender first if there is a rendezvous.
    fn receive(&mut self, address: Address, then: Then) {
        if self.machine.rendezvous {
            let waiting = self.wait(address, then);
            let question = question(address);
            self.wire.send(self.machine, &mut self.clock, question, Then::Receive { waiting });
        } else {
            self.wire.receive(&mut self.clock, address, then);
        }
    }

    fn wait(&mut self, address: Address, then: Then) -> u32 {
        self.wire.waiting.push(Waiting { address, then });
        narrow(self.wire.waiting.len() as u64 - 1)
    }

    /// Starts what can start, in the order of numbers: one computation, one communication, any receives.
    fn issue(&mut self, rank: u32) {
        let ready = self.runs[rank as usize].ready.clone();
        for operation in ready {
            let run = &mut self.runs[rank as usize];
            let kind = run.operations[operation as usize].kind;
            let slot = match kind {
                Kind::Compute { .. } => &mut run.is_computing,
                Kind::Collective { .. } | Kind::Send { .. } => &mut run.is_communicating,
                Kind::Receive { .. } => &mut false,
            };
            if std::mem::replace(slot, true) {
                continue;
            }
            run.ready.retain(|&ready| ready != operation);
            run.ongoing.push(operation);
            let then = Then::Done { npu: rank, operation };
            match kind {
                Kind::Compute { nanoseconds } => {
                    run.computed += nanoseconds;
                    self.clock.local(rank, nanoseconds, Local::Done { operation });
                }
                Kind::Collective { collective, bytes, group, dimensions } => {
                    if let Err(refused) = self.collective(rank, operation, collective, bytes, group, dimensions) {
                        self.refused = Some(refused);
                    }
                }
                Kind::Send { to, bytes, tag } => {
                    self.send(Address { tag: tag % TAGS, from: rank, to, bytes }, then);
                }
                Kind::Receive { from, bytes, tag } => {
                    self.receive(Address { tag: tag % TAGS, from, to: rank, bytes }, then);
                }
            }
        }
    }

    /// An operation is done: its slot is free, its followers wait for one less, and what can start starts.
    fn done(&mut self, rank: u32, operation: u32) {
        let run = &mut self.runs[rank as usize];
        match run.operations[operation as usize].kind {
            Kind::Compute { .. } => run.is_computing = false,
            Kind::Collective { .. } | Kind::Send { .. } => run.is_communicating = false,
            Kind::Receive { .. } => {}
        }
        run.ongoing.retain(|&ongoing| ongoing != operation);
        for k in 0..run.followers[operation as usize].len() {
            let follower = run.followers[operation as usize][k];
            run.waits[follower as usize] -= 1;
            if run.waits[follower as usize] == 0 {
                let place = run.ready.partition_point(|&ready| ready < follower);
                run.ready.insert(place, follower);
            }
        }
        self.issue(rank);
        self.look_for_end(rank);
    }

    fn look_for_end(&mut self, rank: u32) {
        let run = &mut self.runs[rank as usize];
        if run.finish.is_none() && run.ready.is_empty() && run.ongoing.is_empty() {
            run.finish = Some(self.clock.now());
        }
    }
}

/// The question that a receiver sends before a message.
const fn question(address: Address) -> Address {
    Address { tag: address.tag + 2 * TAGS, from: address.to, to: address.from, bytes: QUESTION }
}
