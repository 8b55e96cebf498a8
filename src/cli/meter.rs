//! The meter: a bar on a terminal, plain lines elsewhere, moved by one thread and never by points.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};

use super::render::count;
use crate::run::Progress;
use crate::run::progress::Snapshot;
use crate::units::{Unit, human, real, whole};

/// How often a bar moves.
const TICK: Duration = Duration::from_millis(200);
/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

/// A running meter.
#[derive(Debug)]
pub struct Meter {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Meter {
    /// Starts a meter; quiet ones show nothing.
    pub fn start(progress: Arc<Progress>, quiet: bool) -> Self {
        let (stop, stopped) = channel();
        let terminal = std::io::stderr().is_terminal();
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::new(1);
            if let Ok(style) = ProgressStyle::with_template("  {wide_bar:.cyan/blue} {percent:>3} %  {msg}") {
                bar.set_style(style);
            }
            let started = Instant::now();
            let mut printed = Instant::now();
            loop {
                if !matches!(stopped.recv_timeout(TICK), Err(RecvTimeoutError::Timeout)) {
                    break;
                }
                if quiet {
                    continue;
                }
                let now = progress.snapshot();
                let seconds = started.elapsed().as_secs_f64();
                if terminal {
                    bar.set_length(now.to_do.max(1));
                    bar.set_position(now.passed);
                    bar.set_message(line(&now, seconds));
                } else if printed.elapsed() >= LINE {
                    printed = Instant::now();
                    let share = 100.0 * real(now.passed) / real(now.to_do.max(1));
                    eprintln!("  {seconds:.0} s  {share:.1} %  {}", line(&now, seconds));
                }
            }
            bar.finish_and_clear();
        });
        Self { stop, thread }
    }

    /// Ends the meter and clears its bar.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Counts, speed, time left and the best so far in one line.
fn line(now: &Snapshot, seconds: f64) -> String {
    let left = now.left(seconds).map_or_else(|| "?".to_owned(), |left| human(left, Unit::SECOND));
    let best = now.best.map(|best| format!("  best {}", human(best, Unit::SECOND))).unwrap_or_default();
    format!(
        "{} feasible, {} not  {} points/s  {left} left{best}",
        count(now.feasible),
        count(now.infeasible),
        count(whole((real(now.points()) / seconds).round())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_in_points_and_time_left_in_numbers() {
        // A tenth of the product passed in 10 s, a tenth of that points.
        let now = Snapshot {
            total: 1_000_000,
            to_do: 1_000_000,
            passed: 100_000,
            feasible: 4_000,
            infeasible: 6_000,
            best: None,
        };
        assert_eq!(line(&now, 10.0), "4,000 feasible, 6,000 not  1,000 points/s  90 s left");
        assert_eq!(line(&Snapshot::default(), 10.0), "0 feasible, 0 not  0 points/s  ? left");
    }
}
