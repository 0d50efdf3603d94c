-- How much of a rate limit is used: one row per policy and subject (a key or an account), which starts over
-- once its window has ended.

CREATE TABLE quotas (
  policy TEXT NOT NULL,
  subject TEXT NOT NULL,
  window_ends TEXT NOT NULL,
  used INTEGER NOT NULL,
  PRIMARY KEY (policy, subject)
);
