//! Which iterations of a loop save their state, if memory suffices for a few: the others run again from the last
//! saved state when the backward pass needs them.
//!
//! A. Griewank, A. Walther, "Revolve" (2000): with `s` states at a time, and if no iteration runs again more than `t` times,
//! binomial(s + t, s) iterations can be reversed.

/// How many iterations `states` checkpoints reverse if none runs again more than `times` times: binomial(states + times, states).
fn reach(states: u64, times: u64) -> u64 {
    let (more, less) = (states.max(times), states.min(times));
    let mut factors = 1..=less;
    // Each product is divisible by `k`: it is a binomial coefficient times `k`.
    let all = factors.try_fold(1_u64, |all, k| {
        Some(all.checked_mul(more.checked_add(k)?)? / k)
    });
    all.unwrap_or(u64::MAX)
}

/// How often an iteration runs again, at most, if so many are reversed with so many states at a time.
pub(super) fn times(iterations: u64, states: u64) -> u64 {
    if states == 1 {
        return iterations.saturating_sub(1);
    }
    let mut times = (0..).filter(|&t| reach(states, t) >= iterations);
    times.next().expect("the reach grows")
}

/// After how many iterations the next state is saved. The first of `iterations` has saved its own, which is one of
/// `states`, at least two.
pub(super) fn advance(iterations: u64, states: u64) -> u64 {
    let times = times(iterations, states);
    if times == 0 {
        return 1;
    }
    // What is behind the next state is reversed with one state less, what is before it runs again once more.
    let least = iterations.saturating_sub(reach(states - 1, times));
    let balanced = times.checked_sub(2).map_or(1, |t| reach(states, t));
    least.max(balanced).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each iteration runs again, and the most states at a time.
    fn reversed(first: usize, n: usize, states: u64, runs: &mut [u64], held: u64) -> u64 {
        if n <= 1 {
            return held;
        }
        if states == 1 {
            for (k, run) in runs[first..first + n - 1].iter_mut().enumerate() {
                *run += (n - 1 - k) as u64;
            }
            return held;
        }
        let m = advance(n as u64, states) as usize;
        runs[first..first + m].iter_mut().for_each(|r| *r += 1);
        let behind = reversed(first + m, n - m, states - 1, runs, held + 1);
        behind.max(reversed(first, m, states, runs, held))
    }

    #[test]
    fn no_iteration_runs_more_often_than_it_has_to() {
        for n in 1..150 {
            for states in 1..12 {
                let mut runs = vec![0; n];
                let most = reversed(0, n, states, &mut runs, 1);
                let times = times(n as u64, states);
                assert!(runs.iter().all(|&r| r <= times), "{n} {states} {runs:?}");
                assert!(most <= states);
            }
        }
        assert_eq!(times(100, 100), 1);
        assert_eq!(times(100, 13), 2);
        assert_eq!(times(u64::MAX, u64::MAX), 1);
    }
}
