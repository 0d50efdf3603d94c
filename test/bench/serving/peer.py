"""The plainest rankings API in Python: FastAPI over DuckDB, with the plain SQL of the two rankings."""

import sys
import duckdb, uvicorn
from fastapi import FastAPI

file, port = sys.argv[1:]
database = duckdb.connect(file, read_only=True)
app = FastAPI()

TOKENS = "sum(prompt_tokens) + sum(completion_tokens)"
SQL = {
    "popular": f"""SELECT app_id, app_name, sum(requests) AS total_requests, {TOKENS} AS total_tokens
        FROM app_daily JOIN apps USING (app_id) WHERE day BETWEEN $start::DATE AND $end::DATE
        GROUP BY ALL ORDER BY total_tokens DESC, app_id LIMIT 50""",
    "trending": f"""SELECT app_id, app_name, sum(requests) FILTER (day >= $start::DATE) AS total_requests,
          coalesce({TOKENS.replace(")", ") FILTER (day >= $start::DATE)")}, 0) AS total_tokens,
          4 * total_tokens - ({TOKENS}) AS excess
        FROM app_daily JOIN apps USING (app_id)
        WHERE day BETWEEN $start::DATE - 3 * ($end::DATE - $start::DATE + 1)::INT AND $end::DATE
        GROUP BY ALL HAVING excess > 0 ORDER BY excess DESC, total_tokens DESC, app_id LIMIT 50""",
}


@app.get("/rankings")
def rankings(sort: str, start_date: str, end_date: str):
    result = database.cursor().execute(SQL[sort], {"start": start_date, "end": end_date})
    names = [column[0] for column in result.description]
    return {"data": [dict(zip(names, row)) for row in result.fetchall()]}


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
