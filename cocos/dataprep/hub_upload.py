"""Upload of a prepared folder to the Hugging Face hub."""

from pathlib import Path

from cocos.dataprep.sources import Source
from cocos.problems import DataError

REMEDY = "give a token with write access: set HF_TOKEN, or run hf auth login"


def require_access(name: str) -> None:
    """Check the name of a repository and the token before the work begins.

    Raises:
        DataError: The name is none, there is no token, or the hub does not accept it.

    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise DataError(f"--push_to_hub {name}: {error}; give OWNER/NAME") from None
    if not get_token():
        raise DataError(f"--push_to_hub {name}: there is no token; {REMEDY}")
    try:
        HfApi().whoami()
    except Exception as error:  # one boundary: a refusal, or any error of the library's HTTP client
        raise DataError(f"--push_to_hub {name}: {_reason(error)}; {REMEDY}") from None


def upload(folder: Path, name: str, source: Source) -> str:
    """Upload a prepared folder as a data set, private if it is new; return its address.

    Raises:
        DataError: The hub refuses it; the folder stays as it is.

    """
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        address = api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
        api.upload_folder(
            folder_path=folder, repo_id=name, repo_type="dataset", commit_message=f"Add {source.title}"
        )
    except Exception as error:  # as above
        raise DataError(
            f"--push_to_hub {name}: {_reason(error)}; {folder} is complete, upload it with: hf upload {name} "
            f"{folder} --repo-type dataset"
        ) from None
    return str(address)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
