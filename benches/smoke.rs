//! Both suites for test explorers: a stub for each scenario, which
//! rust-analyzer and others list, run and mark. What runs is the suite, each
//! body once; the compiler strips the stubs.
//!
//! They are made anew by
//! `cargo test --test smoke -- --list --format terse | wallgrind stubs benches/smoke.rs`;
//! a test holds them against the suites.

fn main() -> std::process::ExitCode {
    wallgrind::main(|suite| {
        wallgrind::families::tls::register(suite);
        wallgrind::families::block::register(suite);
    })
}

// stubs: begin
#[rustfmt::skip]
mod block {
    mod qcow_async_backing_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_compressed_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_l2_cache_miss {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_multi_cluster_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_random_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_async_write {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_backing_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_batch_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_batch_write {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_chain_cow {
        #[test] fn d01() { unreachable!("harness = false") }
        #[test] fn d02() { unreachable!("harness = false") }
        #[test] fn d08() { unreachable!("harness = false") }
    }
    mod qcow_chain_read {
        #[test] fn d01() { unreachable!("harness = false") }
        #[test] fn d02() { unreachable!("harness = false") }
        #[test] fn d08() { unreachable!("harness = false") }
    }
    mod qcow_cluster_append {
        #[test] fn c4k() { unreachable!("harness = false") }
        #[test] fn c64k() { unreachable!("harness = false") }
        #[test] fn c2m() { unreachable!("harness = false") }
    }
    mod qcow_cluster_rand_read {
        #[test] fn c4k() { unreachable!("harness = false") }
        #[test] fn c64k() { unreachable!("harness = false") }
        #[test] fn c2m() { unreachable!("harness = false") }
    }
    mod qcow_compressed_part_read {
        #[test] fn zlib() { unreachable!("harness = false") }
        #[test] fn zstd() { unreachable!("harness = false") }
    }
    mod qcow_compressed_part_write {
        #[test] fn zlib() { unreachable!("harness = false") }
        #[test] fn zstd() { unreachable!("harness = false") }
    }
    mod qcow_compressed_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_cow_write {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_flush {
        #[test] fn dirty_l2_001() { unreachable!("harness = false") }
        #[test] fn dirty_l2_016() { unreachable!("harness = false") }
        #[test] fn dirty_l2_256() { unreachable!("harness = false") }
    }
    mod qcow_fsync {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_l2_cache_miss {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_l2_eviction {
        #[test] fn cyclic() { unreachable!("harness = false") }
        #[test] fn there_and_back() { unreachable!("harness = false") }
    }
    mod qcow_long_read {
        #[test] fn contiguous() { unreachable!("harness = false") }
        #[test] fn scattered() { unreachable!("harness = false") }
    }
    mod qcow_multi_cluster_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_open {
        #[test] fn small() { unreachable!("harness = false") }
        #[test] fn sparse_1tib() { unreachable!("harness = false") }
        #[test] fn chain_d08() { unreachable!("harness = false") }
    }
    mod qcow_partial_cow {
        #[test] fn c4k() { unreachable!("harness = false") }
        #[test] fn c64k() { unreachable!("harness = false") }
        #[test] fn c2m() { unreachable!("harness = false") }
    }
    mod qcow_punch_hole {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_rand_mixed {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
    }
    mod qcow_rand_read {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
        #[test] fn cold_sync_qd032() { unreachable!("harness = false") }
        #[test] fn cold_aio_qd032() { unreachable!("harness = false") }
        #[test] fn cold_uring_qd032() { unreachable!("harness = false") }
    }
    mod qcow_rand_write {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
    }
    mod qcow_random_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_read {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_resize {
        #[test] fn in_place() { unreachable!("harness = false") }
        #[test] fn moves_l1() { unreachable!("harness = false") }
    }
    mod qcow_shared_discard {
        #[test] fn whole() { unreachable!("harness = false") }
    }
    mod qcow_shared_write {
        #[test] fn whole() { unreachable!("harness = false") }
        #[test] fn partial() { unreachable!("harness = false") }
    }
    mod qcow_snapshot {
        #[test] fn create() { unreachable!("harness = false") }
        #[test] fn delete() { unreachable!("harness = false") }
    }
    mod qcow_threads_read {
        #[test] fn t01() { unreachable!("harness = false") }
        #[test] fn t02() { unreachable!("harness = false") }
        #[test] fn t04() { unreachable!("harness = false") }
    }
    mod qcow_threads_write {
        #[test] fn t01() { unreachable!("harness = false") }
        #[test] fn t02() { unreachable!("harness = false") }
        #[test] fn t04() { unreachable!("harness = false") }
    }
    mod qcow_write {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod qcow_write_zeroes {
        #[test] fn whole() { unreachable!("harness = false") }
    }
    mod qcow_zero_read {
        #[test] fn whole() { unreachable!("harness = false") }
    }
    mod qcow_zero_write {
        #[test] fn whole() { unreachable!("harness = false") }
        #[test] fn partial() { unreachable!("harness = false") }
    }
    mod qcow_zstd_read {
        #[test] fn sync() { unreachable!("harness = false") }
        #[test] fn uring() { unreachable!("harness = false") }
    }
    mod raw_aio_drain {
        #[test] fn n128() { unreachable!("harness = false") }
        #[test] fn n256() { unreachable!("harness = false") }
    }
    mod raw_rand_mixed {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
    }
    mod raw_rand_read {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
        #[test] fn cold_sync_qd032() { unreachable!("harness = false") }
        #[test] fn cold_aio_qd032() { unreachable!("harness = false") }
        #[test] fn cold_uring_qd032() { unreachable!("harness = false") }
    }
    mod raw_rand_write {
        #[test] fn warm_sync_qd001() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd008() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_sync_qd128() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd001() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd008() { unreachable!("harness = false") }
        #[test] fn direct_sync_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd001() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd008() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_aio_qd128() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd001() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd008() { unreachable!("harness = false") }
        #[test] fn direct_aio_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd001() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd008() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd032() { unreachable!("harness = false") }
        #[test] fn warm_uring_qd128() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd001() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd008() { unreachable!("harness = false") }
        #[test] fn direct_uring_qd032() { unreachable!("harness = false") }
    }
}
#[rustfmt::skip]
mod tls {
    mod handshake_mlkem768 {
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
    }
    mod handshake_mlkem768_tickets {
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
    }
    mod handshake_mutual {
        #[test] fn ring_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
    }
    mod handshake_no_resume {
        #[test] fn ring_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_2() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ed25519_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ed25519_aes() { unreachable!("harness = false") }
    }
    mod handshake_retry {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod handshake_session_id {
        #[test] fn ring_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_2() { unreachable!("harness = false") }
    }
    mod handshake_tickets {
        #[test] fn ring_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_2() { unreachable!("harness = false") }
    }
    mod handshake_unbuffered {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod ping_pong {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod transfer_no_resume {
        #[test] fn ring_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn ring_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn ring_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_2_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_rsa_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_chacha() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap384_chacha() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_2() { unreachable!("harness = false") }
    }
    mod transfer_records_00256 {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod transfer_records_01024 {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod transfer_records_16384 {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod transfer_unbuffered {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
    mod transfer_upload {
        #[test] fn ring_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn aws_lc_rs_1_3_ecdsap256_aes() { unreachable!("harness = false") }
        #[test] fn no_crypto_1_3() { unreachable!("harness = false") }
    }
}
// stubs: end
