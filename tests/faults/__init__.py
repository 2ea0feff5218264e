"""Every fault that a topic must survive, by number, and the tests that show it does.

    F1   processes race for one version       connector/store/test_store_contract.py::test_sixteen
                                              test_race.py::test_f01_
    F2   the store ignores the condition      connector/store/test_store_probe.py::test_store_with
                                              connector/store/test_store_probe.py::test_server_that
    F3   answer lost, 500, 503, hang, reset   test_s3_proxy.py::test_f03_
                                              test_nth_call.py::test_f03_
                                              connector/store/test_s3_answers.py::test_result_of_an_answer
    F4   unexpected 409, 412; 403 for absent  test_s3_proxy.py::test_f03_f04_
                                              test_s3_proxy.py::test_f04_
                                              connector/store/test_s3_answers.py::test_result_of_an_answer
                                              connector/store/test_s3_answers.py::test_412_without
    F6   crash at every call of the store     test_kill.py::test_f06_
                                              test_nth_call.py::test_f03_f06_
                                              simulation/test_simulation.py::test_a_seed_shows
    F7   a zombie writer                      test_zombie.py::test_f07_
                                              spark_faults/test_two_drivers.py::test_a_stopped
                                              spark_faults/test_driver_kills.py::test_killed
    F8   an expired version committed again   test_expired_commits.py::test_f08_
    F9   a stale reader across log expiration test_expired_commits.py::test_f09_
    F10  a commit that raises and succeeded   spark_faults/test_task_kills.py::test_tasks_and
                                              spark_faults/test_stores.py
    F11  a retried task                       spark_faults/test_task_kills.py::test_tasks_and
    F12  a speculative copy of a task         spark_faults/test_standalone.py::test_klog_by_an
    F13  a batch written again                spark_faults/test_driver_kills.py::test_killed
    F14  two queries on one checkpoint        spark_faults/test_two_drivers.py::test_two
    F16  torn, empty, changed checkpoint      test_hostile_roots.py::test_f16_
    F17  wrong, future checkpoint or commit   test_hostile_roots.py::test_f16_f17_
                                              test_hostile_roots.py::test_f17_
    F18  a segment damaged or missing         connector/source/test_committed_damage.py::test_a_trun
                                              connector/source/test_committed_damage.py::test_a_flipped
                                              connector/source/test_committed_damage.py::test_a_swapped
                                              connector/source/test_committed_damage.py::test_missing_segment
    F21  vacuum with slow writers and plans   simulation/test_simulation.py::test_a_seed_shows
                                              simulation/test_simulation.py::test_a_mistake_shows
                                              test_zombie.py::test_f07_a_zombie_stopped_longer
    F24  clocks that differ or go back        test_expired_commits.py::test_f24_
                                              simulation/test_simulation.py::test_a_seed_shows
    F28  disk full, no permission, old keys   test_disk.py::test_f28_
                                              test_s3_proxy.py::test_f28_
    F29  power loss                           test_power.py::test_f29_
                                              connector/store/test_local_store.py::test_name_comes_after_the_syncs
    F31  hostile commits, names and paths     test_hostile_roots.py::test_f17_f31_
                                              test_hostile_roots.py::test_f31_
                                              connector/commit_log/test_commit_json.py::test_any_json_is_a_commit
         hostile segments                     damage/test_damaged_logs.py::test_hostile_batches
                                              damage/test_damaged_logs.py::test_many_batches
         secrets in plans, logs and errors    connector/store/test_secret_canary.py::test_
    F32  fifty writers                        test_race.py::test_f32_
    F33  files lost at rest                   test_lost_files.py::test_f33_
                                              test_lost_files_cli.py::test_f33_
                                              connector/commit_log/test_lost_commits.py::test_a_cold_load
                                              simulation/test_simulation.py::test_a_seed_shows
    F34  links out of the root                connector/store/test_root_links.py::test_nothing_is

This needs a feature that does not exist yet:

    F26  transactions                         with transactions over several topics

A name that ends in `_` stands for all tests with that prefix.
"""
