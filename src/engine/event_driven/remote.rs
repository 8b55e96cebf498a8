//! The memory beyond the NPUs' own: one for each, one for each node, or one pool; each serves one request at a time [ASTRA2].

use std::collections::VecDeque;

use super::clock::Local;
use super::{Refused, Simulation};
use crate::system::machine::{Machine, Place, RemoteMemory};
use crate::units::{narrow, real};

/// A memory that serves one request after the other.
#[derive(Debug, Default)]
pub struct Server {
    /// Requests that wait, and the one that is served, in front.
    requests: VecDeque<Request>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    npu: u32,
    run: u32,
    operation: u32,
    bytes: u64,
}

/// The server of an NPU.
const fn server_of(place: Place, npu: u32) -> usize {
    match place {
        Place::PerNpu => npu as usize,
        Place::PerNode { npus } => (npu / npus) as usize,
        Place::Pool => 0,
    }
}

/// Ticks of a request.
///
/// ```text
/// t(S) = floor(latency) + floor(S / bandwidth)      10,005 B at 10 B/ns and 100 ns: 1,100 ns
/// ```
fn service(machine: &Machine, memory: RemoteMemory, bytes: u64) -> u64 {
    machine.ticks(memory.latency).saturating_add(machine.ticks(real(bytes) / memory.bandwidth))
}

impl Simulation<'_> {
    /// An operation reads or writes: behind those that came before.
    pub(super) fn remote(&mut self, npu: u32, (run, operation): (usize, u32), bytes: u64) {
        let Some(memory) = self.machine.remote else {
            let operation = self.runs[run].graph.nodes()[operation as usize].id;
            let rank = self.rank_of(npu);
            let what = "the machine has no memory beyond the NPU's own";
            self.refused.get_or_insert(Refused::Operation { rank, operation, what });
            return;
        };
        let server = server_of(memory.place, self.rank_of(npu));
        if self.servers.len() <= server {
            self.servers.resize_with(server + 1, Server::default);
        }
        let request = Request { npu, run: narrow(run as u64), operation, bytes };
        let requests = &mut self.servers[server].requests;
        requests.push_back(request);
        if requests.len() == 1 {
            self.serve(memory, request);
        }
    }

    fn serve(&mut self, memory: RemoteMemory, request: Request) {
        self.clock.local(request.npu, service(self.machine, memory, request.bytes), Local::Served);
    }

    /// The request that an NPU's memory serves is over: what follows it comes first, then the next request.
    pub(super) fn served(&mut self, npu: u32) {
        let Some(memory) = self.machine.remote else { return };
        let server = server_of(memory.place, self.rank_of(npu));
        let Some(&request) = self.servers[server].requests.front() else { return };
        self.done(request.run as usize, request.operation);
        self.servers[server].requests.pop_front();
        if let Some(&next) = self.servers[server].requests.front() {
            self.serve(memory, next);
        }
    }
}
