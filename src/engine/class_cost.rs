//! What a rank class costs: a microbatch there and back, the end of a step, and what of its traffic hides beneath passes.

use super::prices::{Prices, Tally};
use crate::units::Time;
use crate::workload::program::{Account, Block, Phase, Program, RankClass};
use crate::workload::schedule::{Formula, Passage, StageTimes};

/// The cost of one rank class: a microbatch there, back, and for the weights' gradients where that is apart; the end of the step.
#[derive(Debug, Default)]
pub(super) struct ClassCost {
    pub forward: Tally,
    pub backward: Tally,
    pub weights: Tally,
    pub step: Tally,
    pub passage: Passage,
    /// What its units take, where they are walked.
    pub times: StageTimes,
    /// What `step` holds of traffic that may hide beneath passes: what does not, by formula.
    pub left: Time,
}

impl ClassCost {
    /// Nothing, in a network of so many dimensions.
    fn clear(&mut self, dimensions: usize) {
        for tally in [&mut self.forward, &mut self.backward, &mut self.weights, &mut self.step] {
            tally.clear(dimensions);
        }
        (self.passage, self.times, self.left) = (Passage::default(), StageTimes::default(), Time::ZERO);
    }

    /// The end of a step, once all data-parallel traffic that may hide beneath passes is through.
    pub fn end(&self) -> Time {
        self.step.total().saturating_sub(self.left)
    }

    /// One microbatch through the stage, in all passes.
    pub fn once(&self) -> Time {
        self.forward.total() + self.backward.total() + self.weights.total()
    }

    /// Whether one of the times does not fit.
    pub fn is_beyond(&self) -> bool {
        [&self.forward, &self.backward, &self.weights, &self.step].iter().any(|tally| tally.is_beyond)
    }

    /// That of `class`; with what its units take, if no formula tells how long stages wait.
    pub fn fill(
        &mut self,
        program: &Program,
        class: &RankClass,
        prices: &mut Prices<'_>,
        formula: Option<&dyn Formula>,
    ) {
        self.clear(prices.system.network.dims.len());
        let mut once = Tally::default();
        let mut layers = 1;
        let mut is_made = false;
        for block in program.blocks_of(class) {
            prices.block(program, block, &mut once);
            let is_message = program.is_message(block);
            if program.overlap_sends && is_message {
                once.hidden_sends = std::mem::take(&mut once.exposed[Account::Pipeline as usize]);
            }
            if block.phase == Phase::Forward {
                layers = layers.max(block.repeat);
            }
            let data = once.exposed[Account::Data as usize];
            if data > Time::ZERO {
                let (left, paid) = if program.overlap {
                    let (left, hidden) = self.left(program, block, &once, (layers, formula));
                    (left, prices.system.paid(hidden, data, once.data_sent))
                } else {
                    (data, Time::ZERO)
                };
                once.exposed[Account::Data as usize] = left + paid;
                if block.hidden_beneath.is_some() {
                    self.left += left * block.repeat;
                }
            }
            if formula.is_none() {
                is_made |= self.add_units(program, class, block, (&once, data), (layers, is_made));
            }
            let tally = match block.phase {
                Phase::Forward => &mut self.forward,
                Phase::Backward => &mut self.backward,
                Phase::Weights => &mut self.weights,
                Phase::Step => &mut self.step,
            };
            self.passage.add(once.total(), once.hidden_sends, block, is_message);
            tally.add(&once, block.repeat);
        }
        if formula.is_none() {
            self.close_units(program, prices.system.software.collective_latency.round());
        }
    }

    /// What is left of the data-parallel traffic of a block that costs `once`, and what could hide if nothing else used its
    /// dimensions.
    ///
    /// Within a pass, traffic of the data stream hides beneath the rest of its own block. What is due once a step hides
    /// beneath a pass of the last, or the next, microbatch, but for the layer that is ready last, or due first:
    ///
    /// ```text
    /// exposed = max(data / L, data - pass (L - 1) / L)             262 ms beneath 37 ms of 8 layers leave 230 ms
    /// ```
    ///
    /// if nothing else uses its dimensions. Of a stage with v chunks all but one have their gradients some passes of one chunk
    /// earlier, and need their weights as much later ([`Formula::lead`]).
    fn left(
        &self,
        program: &Program,
        block: &Block,
        once: &Tally,
        (layers, formula): (u64, Option<&dyn Formula>),
    ) -> (Time, Time) {
        let data = once.exposed[Account::Data as usize];
        let own = match block.hidden_beneath {
            Some(Phase::Forward) => &self.forward,
            Some(Phase::Weights) => &self.weights,
            Some(_) => &self.backward,
            None if block.phase == Phase::Step => return (data, Time::ZERO),
            None => {
                let rest = once.total().saturating_sub(data);
                let own = once.traffic.iter().map(|traffic| traffic.busy[0]);
                return (Tally::left(data, rest, own, |k| once.traffic[k].busy[1]), data.min(rest));
            }
        };
        let but_one = |time: Time| time.saturating_sub(time / layers);
        let hidden = but_one(data).min(but_one(own.total()));
        let Some(formula) = formula else { return (Time::ZERO, hidden) };
        let v = program.chunks;
        let part = |share: u64, passes: u64| {
            let all = once.traffic.iter().map(|traffic| traffic.busy[0] * share / layers);
            let window = |of: &dyn Fn(&Tally) -> Time| (of(own) * passes / v).saturating_sub(of(own) / layers);
            let others = |k: usize| window(&|pass| pass.traffic[k].busy[0] + pass.traffic[k].busy[1]);
            Tally::left(data * share / layers, window(&Tally::total), all, others)
        };
        // All but one layer of one chunk beneath that chunk, or all but one layer of all.
        let one = part((layers / v).saturating_sub(1), 1);
        let beneath = if v == 1 { one } else { one.max(part(layers - 1, formula.lead(&program.shape()))) };
        (data / layers + beneath, hidden)
    }

    /// Adds a block of `class` that costs `once` to what units take, with what its data-parallel traffic takes before any of it hides.
    /// `layers` are those of a stage; whether gradients of the first of them have been made before, and are now.
    fn add_units(
        &mut self,
        program: &Program,
        class: &RankClass,
        block: &Block,
        (once, data): (&Tally, Time),
        (layers, is_made): (u64, bool),
    ) -> bool {
        let times = &mut self.times;
        let (blocks, chunks) = (program.blocks_of(class), program.chunks);
        match (block.phase, block.hidden_beneath) {
            (Phase::Step, None) => {}
            (Phase::Step, Some(pass)) => {
                let data = data * block.repeat;
                let hiding = if pass == Phase::Forward { &mut times.weights } else { &mut times.gradients };
                if program.overlap {
                    hiding.alone += data / layers;
                    hiding.beside += data;
                    hiding.layers = layers;
                } else {
                    hiding.alone += data;
                }
            }
            _ if program.is_message(block) => {
                times.message = times.message.max(once.hidden_sends.max(once.exposed[Account::Pipeline as usize]));
            }
            (pass, _) => {
                let time = once.total();
                let units = &mut times.units[pass as usize];
                let of_chunk = |chunk: u64| block.of_chunk(blocks, chunk, chunks);
                units[0] += time * of_chunk(0);
                if chunks > 1 {
                    units[2] += time * of_chunk(chunks - 1);
                }
                if let Some(between) = chunks.checked_sub(2).filter(|&between| between > 0) {
                    units[1] += time * (block.repeat - of_chunk(0) - of_chunk(chunks - 1)) / between;
                }
                if pass == program.gradients() && !is_made {
                    let is_layer = block.repeat == layers && of_chunk(0) > 0;
                    times.first_made += if is_layer { time } else { time * of_chunk(0) };
                    return is_layer;
                }
            }
        }
        false
    }

    /// All blocks are there: what is common to them.
    fn close_units(&mut self, program: &Program, latency: Time) {
        let slowed = |pass: &Tally| {
            let busy = |k: usize| pass.traffic[k].busy[0] + pass.traffic[k].busy[1];
            let waits = Tally::waits(self.step.traffic.iter().map(|traffic| traffic.busy[0]), busy);
            // It is never held up altogether.
            (1.0 - waits / pass.total().as_seconds()).max(0.1).recip()
        };
        let made = if program.gradients() == Phase::Weights { &self.weights } else { &self.backward };
        let slowed = [slowed(&self.forward), slowed(made)];
        let times = &mut self.times;
        times.message = times.message.saturating_sub(latency);
        times.latency = if program.overlap_sends { Time::ZERO } else { latency };
        [times.weights.slowed, times.gradients.slowed] = slowed;
        times.meets = self.step.exposed[Account::Pipeline as usize] > Time::ZERO;
    }
}
