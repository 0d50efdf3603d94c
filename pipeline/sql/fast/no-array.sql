RESET perfect_ht_threshold;
