//! Code of no use but to move what is linked behind it: with `HARNESS_MOVED`
//! set when it is built, a bench target does the same work in another
//! executable. `.ci/verdicts` compares the two. Neighbours: the bench targets.

/// Keeps the code that moves the rest, if this build is to have it.
pub fn keep() {
    if option_env!("HARNESS_MOVED").is_some() {
        std::hint::black_box(work as fn(usize) -> usize);
    }
}

#[inline(never)]
fn work(n: usize) -> usize {
    (0..n).map(|i| format!("{i:?} is {:#x}, {:e}", i * 3, i as f64).repeat(3).len()).sum()
}
