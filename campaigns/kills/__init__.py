KINDS = {}
def run_case(kind, seed, stock, folder): raise NotImplementedError
